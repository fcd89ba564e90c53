"""``rstar2 show``: print one episode, or a summary of a file of episodes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def show_command(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="File of episodes from a run, an evaluation or a recording (.jsonl, .jsonl.gz)."
        ),
    ],
    episode: Annotated[
        int | None, typer.Argument(metavar="[NUMBER]", min=0, help="Line number of the episode to show, from 0.")
    ] = None,
    pager: Annotated[bool, typer.Option("--pager/--no-pager", help="Use a pager if stdout is a terminal.")] = True,
) -> None:
    """Print one episode as a conversation, or a summary of a file with several episodes.

    Text from a model is displayed safely: control characters are printed as visible symbols.
    """
    from rich.console import Console

    from rstar2_env.view.terminal.files import show_file
    from rstar2_env.view.terminal.overview import print_all

    print_all(Console(), [show_file(file, episode)], pager=pager)
