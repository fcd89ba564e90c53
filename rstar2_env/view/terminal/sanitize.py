"""Text from models and files for rich: harmless to a terminal, and without markup."""

from __future__ import annotations

from rich.text import Text

from rstar2_env.core.text import harmless


def one_line(text: object, longest: int = 200) -> str:
    """Return a harmless text as one line, cut to a length."""
    line = " ".join(harmless(text).split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def safe_text(text: object, style: str = "") -> Text:
    """Return a harmless text for rich, which interprets no markup in it."""
    return Text(harmless(text), style=style)
