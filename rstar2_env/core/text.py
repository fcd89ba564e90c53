"""Text helpers: make text safe for tokenizers and files, remove parts of a text."""

from __future__ import annotations

from collections.abc import Iterable


def encodable(text: str) -> str:
    """Replace each lone surrogate by ``?``, since neither tokenizers nor UTF-8 files accept lone surrogates."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def without_spans(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return a text without some of its parts.

    Args:
        text: The text.
        spans: Start and end of each part to remove, in order and without overlaps.
    """
    kept, done = [], 0
    for start, end in spans:
        kept.append(text[done:start])
        done = end
    return "".join([*kept, text[done:]])
