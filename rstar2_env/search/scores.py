"""Which child to look at next: what is known of it, and what is not known yet.

Every function takes counts and values, so that trees of other kinds use the same formulas. Covered: UCT in the forms of
RAP and of DeepSearch, and AlphaZero's PUCT in the form of x1.
"""

from __future__ import annotations

import math
from typing import Protocol

_C1, _C2 = 1.25, 19_652.0


def uct(value: float, parent_visits: int, visits: int, *, weight: float = 1.0) -> float:
    """``value + weight * sqrt(ln(parent_visits) / max(1, visits))``.

    RAP (arXiv 2305.14992, section 3.3) with weight 1; DeepSearch (arXiv 2509.25454, section 3) with weight 2, for nodes
    that were visited. The value of a child that was not is what its step looked like before it was taken.

    Args:
        value: What is known of the child.
        parent_visits: Visits of its parent.
        visits: Its own visits.
        weight: How much what is unknown counts.
    """
    return value + weight * math.sqrt(math.log(max(1, parent_visits)) / max(1, visits))


def puct(value: float, parent_visits: int, visits: int, *, weight: float = 1.0) -> float:
    """``value + weight * sqrt(N - 1) / (1 + n) * (c1 + ln((N + c2) / c2))``, c1 = 1.25 and c2 = 19652.

    MuZero's rule as x1 has it, with a uniform prior (Reasoning Language Models: A Blueprint, arXiv 2501.11223,
    appendix on MCTS).

    Args:
        value: What is known of the child.
        parent_visits: N, the visits of its parent.
        visits: n, its own visits.
        weight: The child's prior.
    """
    wide = _C1 + math.log((parent_visits + _C2) / _C2)
    return value + weight * math.sqrt(max(0, parent_visits - 1)) / (1 + visits) * wide


class Score(Protocol):
    """How ``uct`` and ``puct`` are called."""

    def __call__(self, value: float, parent_visits: int, visits: int, *, weight: float) -> float:
        """The score of a child; the largest is chosen."""
        ...


SCORES: dict[str, Score] = {"uct": uct, "puct": puct}
"""By name."""
