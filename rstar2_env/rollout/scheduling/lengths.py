"""How long episodes become: a survival estimate from those that ended and those that still play.

Lengths are shares of what an episode may have at most, in ``BUCKETS`` equal steps. Short episodes end first, so a mean
over those that have ended is too low whenever many still play; the life-table estimate (E. L. Kaplan and P. Meier,
Nonparametric estimation from incomplete observations, 1958; with the actuarial half for those inside a bucket) counts
what the others have reached already. Where nothing was seen an episode is taken to go on. Old episodes are forgotten
slowly, since lengths change as a policy learns. Not covered: lengths that depend on the problem.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BUCKETS = 64

_DOUBT = 16
"""Episodes that are taken to have gone on, besides those that were seen: without any, all reach their most."""

_REFRESH = 0.02
"""The tables are worked out again when the observations have changed by this share."""


def bucket(tokens: int, most: int) -> int:
    """The bucket that an episode of so many tokens, of at most ``most``, is in."""
    return min(BUCKETS - 1, tokens * BUCKETS // max(most, 1))


class Lengths:
    """What was seen, and what it says of episodes that play.

    Args:
        memory: Episodes that weigh in; older ones fade.

    Attributes:
        alive: (BUCKETS, BUCKETS); ``alive[b, h]`` is the chance that an episode which is in bucket ``b`` now still
            plays when it has passed ``h`` more.
        mean_table: (2 * BUCKETS, BUCKETS); sums over the episodes in each bucket of their prompts, and of their most
            tokens, one after the other, times this are the tokens expected at each ``h``.
        variance_table: (3 * BUCKETS, BUCKETS); the same for the variance, from the sums of the squared prompts, of the
            products of prompt and most, and of the squared mosts.
    """

    def __init__(self, memory: float = 4096.0) -> None:
        self._keep = 1.0 - 1.0 / memory
        self._passed = np.zeros(BUCKETS)
        self._ended = np.zeros(BUCKETS)
        self._inside = np.zeros(BUCKETS)
        self._changes = 0.0
        start = np.arange(BUCKETS)[:, None]
        self._ahead = start + np.arange(BUCKETS)[None, :]
        # The share of its most tokens that an episode has by then, at the bucket's upper edge.
        self._size = np.minimum(self._ahead + 1, BUCKETS) / BUCKETS
        self.alive: NDArray[np.float64]
        self.mean_table: NDArray[np.float64]
        self.variance_table: NDArray[np.float64]
        self._tabulate()

    def begin(self) -> None:
        """An episode begins."""
        self._inside[0] += 1

    def grow(self, before: int, now: int) -> bool:
        """An episode went from one bucket to another; returns whether the tables changed."""
        self._inside[before] -= 1
        self._inside[now] += 1
        self._passed[before:now] += 1
        return self._changed(now - before)

    def end(self, at: int, *, seen: bool) -> bool:
        """An episode ended in that bucket, by itself or (not ``seen``) because it was cut off.

        Returns:
            Whether the tables changed.
        """
        self._inside[at] -= 1
        if not seen:
            return False
        self._passed *= self._keep
        self._ended *= self._keep
        self._ended[at] += 1
        return self._changed(1)

    def mean(self) -> float:
        """Expected length of a new episode, as a share of the most it may have."""
        return float(self.alive[0].sum() / BUCKETS)

    def _changed(self, by: int) -> bool:
        self._changes += by
        if self._changes < max(1.0, _REFRESH * float((self._passed + self._ended).sum())):
            return False
        self._changes = 0.0
        self._tabulate()
        return True

    def _tabulate(self) -> None:
        # Where few were, as ahead of a first wave of episodes, chance must not make all look short.
        left = self._passed + self._ended
        at_risk = left + self._inside / 2 + _DOUBT
        survive = np.append(np.where(left >= self._inside, 1 - self._ended / at_risk, 1.0), 1.0)
        # reached[b] is the chance to reach bucket b from the start.
        reached = np.concatenate(([1.0], np.cumprod(np.maximum(survive[:BUCKETS], 1e-12))))
        ahead = np.minimum(self._ahead, BUCKETS)
        self.alive = np.where(self._ahead < BUCKETS, reached[ahead] / reached[:BUCKETS, None], 0.0)
        self.mean_table = np.concatenate([self.alive, self.alive * self._size])
        doubt = self.alive * (1 - self.alive)
        self.variance_table = np.concatenate([doubt, 2 * doubt * self._size, doubt * self._size**2])
