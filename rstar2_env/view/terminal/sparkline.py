"""Draws curves in one line of text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

_BARS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float | None], width: int = 40, at: Sequence[float] | None = None) -> str:
    """Draw a curve of block characters, scaled from the smallest to the largest value; missing values are gaps.

    Args:
        values: Values in order; ``None`` for a missing value.
        width: Maximum number of characters; if there are more values, neighbouring values are averaged.
        at: Ascending position of each value on the axis, for curves that are drawn over the same axis; ``None`` spaces
            the values evenly.
    """
    if at:
        values = _placed(values, width, at)
    elif len(values) > width:
        bounds = [round(at * len(values) / width) for at in range(width + 1)]
        values = [_mean(values[low:high]) for low, high in pairwise(bounds)]
    known = [value for value in values if value is not None and math.isfinite(value)]
    if not known:
        return ""
    low, span = min(known), max(known) - min(known)

    def bar(value: float | None) -> str:
        if value is None or not math.isfinite(value):
            return " "
        return _BARS[min(int((value - low) / span * len(_BARS)), len(_BARS) - 1)] if span else _BARS[3]

    return "".join(map(bar, values))


def _placed(values: Sequence[float | None], width: int, at: Sequence[float]) -> list[float | None]:
    """Return one value for each character of an axis: the mean of the values at the character's position."""
    first, span = at[0], at[-1] - at[0]
    columns: list[list[float | None]] = [[] for _ in range(min(width, int(span) + 1))]
    for position, value in zip(at, values, strict=True):
        columns[int((position - first) * (len(columns) - 1) / span) if span else 0].append(value)
    return [_mean(column) for column in columns]


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
