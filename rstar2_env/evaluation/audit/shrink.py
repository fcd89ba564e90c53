"""Shrinks texts and sequences of calls while a property still holds (delta debugging; Zeller and Hildebrandt 2002)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def shrunk(items: Sequence[T], holds: Callable[[list[T]], bool], *, most: int = 200) -> list[T]:
    """Return a subsequence for which a property still holds.

    Unless the number of trials reaches ``most``, removing any single item from the result would break the property.

    Args:
        items: The sequence, for which the property holds.
        holds: Returns whether the property holds for a subsequence.
        most: Maximum number of trials.
    """
    kept, parts, trials = list(items), 2, 0
    while kept and trials < most:
        size = max(1, len(kept) // parts)
        for start in range(0, len(kept), size):
            trials += 1
            fewer = kept[:start] + kept[start + size :]
            if trials <= most and holds(fewer):
                kept, parts = fewer, max(2, parts - 1)
                break
        else:
            if size == 1:
                break
            parts = min(len(kept), 2 * parts)
    return kept


def shrunk_text(text: str, holds: Callable[[str], bool], *, most: int = 200) -> str:
    """Return a shorter text for which a property still holds; see ``shrunk``.

    Args:
        text: The text, for which the property holds.
        holds: Returns whether the property holds for a text.
        most: Maximum number of trials.
    """
    return "".join(shrunk(text, lambda kept: holds("".join(kept)), most=most))
