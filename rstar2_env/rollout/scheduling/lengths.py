"""Estimates the distribution of episode lengths from ended and running episodes.

Lengths are fractions of the maximum length of an episode, in ``BUCKETS`` equal steps. Short episodes end first, so the
mean over ended episodes is too low while many still run. The life-table estimate (E. L. Kaplan and P. Meier,
Nonparametric estimation from incomplete observations, 1958) includes the lengths that running episodes have already
reached; an episode that is still inside a bucket counts there as half. Without observations an episode is assumed to
continue. Old episodes lose weight slowly, since lengths change as a policy learns. Not covered: lengths that depend on
the problem.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BUCKETS = 64

_DOUBT = 16
"""Number of imaginary episodes that never end early, added to the observed ones, so that without observations all
episodes are expected to reach the maximum."""

_REFRESH = 0.02
"""Share by which the observations must change before the tables are computed again."""


def bucket(tokens: int, most: int) -> int:
    """Return the index of an episode's length bucket: one of ``BUCKETS`` equal parts of its maximum length ``most``."""
    return min(BUCKETS - 1, tokens * BUCKETS // max(most, 1))


class Lengths:
    """The observed lengths of episodes, and the tables that forecast the lengths of running episodes.

    Args:
        memory: Effective number of episodes in the estimate; the weight of older ones decays.

    Attributes:
        alive: (BUCKETS, BUCKETS); ``alive[b, h]`` is the probability that an episode in bucket ``b`` still runs after
            ``h`` more buckets.
        mean_table: (2 * BUCKETS, BUCKETS); converts two sums for each bucket (the prompt lengths of its episodes, and
            their maximum lengths) to the expected total number of tokens after ``h`` more buckets, for each ``h``.
        variance_table: (3 * BUCKETS, BUCKETS); the corresponding table for the variance. It converts three sums for
            each bucket: squared prompt lengths, products of prompt length and maximum length, squared maximum lengths.
    """

    def __init__(self, memory: float = 4096.0) -> None:
        self._keep = 1.0 - 1.0 / memory
        self._passed = np.zeros(BUCKETS)
        self._ended = np.zeros(BUCKETS)
        self._inside = np.zeros(BUCKETS)
        self._changes = 0.0
        start = np.arange(BUCKETS)[:, None]
        self._ahead = start + np.arange(BUCKETS)[None, :]
        # Length of an episode after that many more buckets, as a fraction of its maximum: the upper edge of its bucket.
        self._size = np.minimum(self._ahead + 1, BUCKETS) / BUCKETS
        self.alive: NDArray[np.float64]
        self.mean_table: NDArray[np.float64]
        self.variance_table: NDArray[np.float64]
        self._tabulate()

    def begin(self) -> None:
        """Record that an episode begins."""
        self._inside[0] += 1

    def grow(self, before: int, now: int) -> bool:
        """Record that an episode grew from bucket ``before`` to bucket ``now``.

        Returns:
            Whether the tables that forecast lengths were updated.
        """
        self._inside[before] -= 1
        self._inside[now] += 1
        self._passed[before:now] += 1
        return self._changed(now - before)

    def end(self, at: int, *, seen: bool) -> bool:
        """Record that an episode ended in length bucket ``at``, normally (``seen``) or because it was aborted.

        Returns:
            Whether the tables that forecast lengths were updated.
        """
        self._inside[at] -= 1
        if not seen:
            return False
        self._passed *= self._keep
        self._ended *= self._keep
        self._ended[at] += 1
        return self._changed(1)

    def mean(self) -> float:
        """Expected length of a new episode, as a fraction of its maximum."""
        return float(self.alive[0].sum() / BUCKETS)

    def _changed(self, by: int) -> bool:
        self._changes += by
        if self._changes < max(1.0, _REFRESH * float((self._passed + self._ended).sum())):
            return False
        self._changes = 0.0
        self._tabulate()
        return True

    def _tabulate(self) -> None:
        # With few observations, as in a first wave of episodes, chance must not make all episodes seem short.
        left = self._passed + self._ended
        at_risk = left + self._inside / 2 + _DOUBT
        survive = np.append(np.where(left >= self._inside, 1 - self._ended / at_risk, 1.0), 1.0)
        # reached[b] is the probability of reaching bucket b from the start.
        reached = np.concatenate(([1.0], np.cumprod(np.maximum(survive[:BUCKETS], 1e-12))))
        ahead = np.minimum(self._ahead, BUCKETS)
        self.alive = np.where(self._ahead < BUCKETS, reached[ahead] / reached[:BUCKETS, None], 0.0)
        self.mean_table = np.concatenate([self.alive, self.alive * self._size])
        doubt = self.alive * (1 - self.alive)
        self.variance_table = np.concatenate([doubt, 2 * doubt * self._size, doubt * self._size**2])
