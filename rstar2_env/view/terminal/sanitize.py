"""Converts text from models and files for display with rich: without control characters, and not read as markup."""

from __future__ import annotations

from rich.text import Text

from rstar2_env.core.text import harmless


def one_line(text: object, longest: int = 200) -> str:
    """Return a text as one line without control characters, cut to ``longest`` characters."""
    line = " ".join(harmless(text).split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def safe_text(text: object, style: str = "") -> Text:
    """Return a text for rich without control characters; markup in it is not interpreted."""
    return Text(harmless(text), style=style)
