"""``say``: prints a line of a command. Commands print with it, and with the tables of ``_tables`` and ``_screen``."""

from __future__ import annotations

import typer

from rstar2_env.core.secret import hidden
from rstar2_env.core.text import harmless


def say(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a text without secrets, and without what a terminal would interpret.

    Args:
        text: The text.
        err: Print to standard error.
        nl: End the line.
    """
    typer.echo(harmless(hidden(text)), err=err, nl=nl)
