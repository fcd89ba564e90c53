"""One file to send: the viewer's page with answers about runs packed into it, which needs no server and no network."""

from __future__ import annotations

from rstar2_env.view.export.chosen import Chosen, choose
from rstar2_env.view.export.packed import pack
from rstar2_env.view.export.page import EmptyPage, empty_page, page_of
from rstar2_env.view.export.write import write_export

__all__ = ["Chosen", "EmptyPage", "choose", "empty_page", "pack", "page_of", "write_export"]
