"""Scores that select the next child of a node: the child's estimated value plus an exploration bonus.

Every function takes counts and values instead of a ``Node``, so it works for any tree. Covered: UCT as in RAP and
DeepSearch, and MuZero's PUCT as in x1.
"""

from __future__ import annotations

import math
from typing import Protocol

_C1, _C2 = 1.25, 19_652.0


def uct(value: float, parent_visits: int, visits: int, *, weight: float = 1.0) -> float:
    """Return the UCT score ``value + weight * sqrt(ln(parent_visits) / max(1, visits))``.

    RAP (arXiv 2305.14992, section 3.3) uses it with weight 1; DeepSearch (arXiv 2509.25454, section 3) with weight 2,
    for visited nodes. For an unvisited child, pass the guide's score of the child's action as ``value``.

    Args:
        value: Estimated value of the child.
        parent_visits: Number of visits of the parent.
        visits: Number of visits of the child.
        weight: Weight of the exploration bonus.
    """
    return value + weight * math.sqrt(math.log(max(1, parent_visits)) / max(1, visits))


def puct(value: float, parent_visits: int, visits: int, *, weight: float = 1.0) -> float:
    """Return MuZero's score ``value + weight * sqrt(N - 1) / (1 + n) * (c1 + ln((N + c2) / c2))``.

    c1 is 1.25 and c2 is 19652. This is MuZero's rule with a uniform prior, as in the framework x1 (Reasoning Language
    Models: A Blueprint, arXiv 2501.11223, appendix on MCTS).

    Args:
        value: Estimated value of the child.
        parent_visits: N, the number of visits of the parent.
        visits: n, the number of visits of the child.
        weight: The child's prior, a factor of the bonus; 1 for a uniform prior.
    """
    wide = _C1 + math.log((parent_visits + _C2) / _C2)
    return value + weight * math.sqrt(max(0, parent_visits - 1)) / (1 + visits) * wide


class ScoreFunction(Protocol):
    """The signature of ``uct`` and ``puct``."""

    def __call__(self, value: float, parent_visits: int, visits: int, *, weight: float) -> float:
        """Return the score of a child; the child with the highest score is chosen."""
        ...


SCORES: dict[str, ScoreFunction] = {"uct": uct, "puct": puct}
"""The score functions, keyed by name."""
