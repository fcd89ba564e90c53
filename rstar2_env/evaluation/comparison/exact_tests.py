"""Statistical tests problem by problem: the p-value of the difference between two runs, and its q-value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache


@cache
def fisher_exact(correct_a: int, n_a: int, correct_b: int, n_b: int) -> float:
    """Return the two-sided p-value of Fisher's exact test, which compares two shares of right samples.

    The p-value is the total probability of all 2 x 2 tables that have the same row and column sums and are at most as
    likely as the observed table (R. A. Fisher, The Design of Experiments (1935), section 21).

    Args:
        correct_a: Number of right samples of the first run.
        n_a: Number of samples of the first run.
        correct_b: Number of right samples of the second run.
        n_b: Number of samples of the second run.
    """
    right = correct_a + correct_b
    ways = [math.comb(n_a, x) * math.comb(n_b, right - x) for x in range(max(0, right - n_b), min(n_a, right) + 1)]
    observed = math.comb(n_a, correct_a) * math.comb(n_b, correct_b)
    return sum(way for way in ways if way <= observed) / sum(ways)


def false_shares(p_values: Sequence[float]) -> list[float]:
    """Return the q-value of each test: the smallest false discovery rate at which the test counts as a discovery.

    Y. Benjamini and Y. Hochberg, Controlling the False Discovery Rate, Journal of the Royal Statistical Society B 57
    (1995), section 3: with the m p-values in ascending order, the i-th q-value is ``min over j >= i of p_j * m / j``.

    Args:
        p_values: p-values of the tests, in any order.

    Returns:
        One q-value per test, in the same order.
    """
    order = sorted(range(len(p_values)), key=lambda at: p_values[at], reverse=True)
    found = [1.0] * len(p_values)
    least = 1.0
    for rank, at in enumerate(order):
        least = min(least, p_values[at] * len(p_values) / (len(p_values) - rank))
        found[at] = least
    return found
