"""What ``rstar2 view --text`` prints, as renderables."""

from __future__ import annotations

from rstar2_env.view.terminal.files import file_renderable, read_file
from rstar2_env.view.terminal.text_view import read_content, renderables


def text_view(*roots, **options):
    """The runs of folders, or a part of one."""
    return renderables(read_content(*roots, **options))


def show_file(file, episode=None):
    """A file of episodes, or one of them."""
    return file_renderable(read_file(file, episode))
