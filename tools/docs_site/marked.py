"""Replaces the generated text of a page, which is between two marker lines."""

from __future__ import annotations

from rstar2_env.core.errors import ConfigurationError


def with_text(page: str, begin: str, text: str, end: str) -> str:
    """Return the page with a text between two of its lines.

    Raises:
        ConfigurationError: The lines are missing in the page.
    """
    before, begun, rest = page.partition(begin)
    _, ended, after = rest.partition(end)
    if not begun or not ended:
        raise ConfigurationError(f"The page has no place for the text: expected the lines {begin!r} and {end!r}.")
    return f"{before}{begin}\n{text}{end}{after}"
