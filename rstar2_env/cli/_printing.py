"""``say``: prints a line. Every command prints with ``say`` or with the functions of ``_tables`` and ``_screen``."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import typer

from rstar2_env.core.secret import Secret, hidden
from rstar2_env.core.text import harmless

PLAIN: Mapping[str, Any] = MappingProxyType({})


def say(
    text: str = "", *, err: bool = False, nl: bool = True, tells: Secret | None = None, style: Mapping[str, Any] = PLAIN
) -> None:
    """Print a text; secrets become ``***``, and characters that a terminal would interpret are escaped.

    Args:
        text: The text to print.
        err: Whether to print to standard error instead of standard output.
        nl: Whether to end the line.
        tells: A secret that is printed unchanged, because the purpose of the text is to show it.
        style: Colours and weight of the text on a terminal, as for ``typer.style``.
    """
    clean = harmless(hidden(text, tells))
    typer.echo(typer.style(clean, **style) if style else clean, err=err, nl=nl)
