"""Curves of a line's height."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

_BARS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float | None], width: int = 40) -> str:
    """A curve of block characters, from the smallest value to the largest; a gap where nothing is known.

    Args:
        values: In order; ``None`` where nothing is known.
        width: Characters at most; more values are averaged.
    """
    if len(values) > width:
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


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
