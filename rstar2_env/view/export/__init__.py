"""Export: the viewer's page and its data as one HTML file that works without a server or network."""

from __future__ import annotations

from rstar2_env.view.export.episode_choice import EpisodeChoice, choose_episodes
from rstar2_env.view.export.packed import pack
from rstar2_env.view.export.page import EmptyPage, empty_page, page_of
from rstar2_env.view.export.write import write_export

__all__ = ["EmptyPage", "EpisodeChoice", "choose_episodes", "empty_page", "pack", "page_of", "write_export"]
