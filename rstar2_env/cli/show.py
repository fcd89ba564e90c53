"""``rstar2 show``: an episode, or a summary of a file of episodes, in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def show_command(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A file of episodes: JSON lines of a run, an evaluation or a recording; .gz."
        ),
    ],
    episode: Annotated[
        int | None, typer.Argument(metavar="[NUMBER]", min=0, help="Show this episode, by its line from 0.")
    ] = None,
    pager: Annotated[bool, typer.Option("--pager/--no-pager", help="Page through it, in a terminal.")] = True,
) -> None:
    """Print one episode as a conversation; of a file with several, a summary.

    What a model wrote is shown, and does nothing: control characters are printed as signs.
    """
    from rich.console import Console

    from rstar2_env.view.terminal.files import show_file
    from rstar2_env.view.terminal.overview import print_all

    print_all(Console(), [show_file(file, episode)], pager=pager)
