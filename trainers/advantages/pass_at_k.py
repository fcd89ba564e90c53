"""``pass_at_k``: what an episode adds to the best of k (arXiv 2503.19595, arXiv 2505.15201).

A_i = the mean, over all choices of k - 1 others of the group, of max(r_i, the best of them) - the best of them. With k
= the group, that is the best reward less the second best for the best episode, and 0 for all others: verl's
``grpo_passk``. It is an unbiased gradient of the expected best reward of k episodes. Choose it where many attempts will
be made at each problem, and to keep the policy's answers diverse.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rstar2_env.core.episode import Episode
from rstar2_env.core.options import CheckedOptions, option

from ..ranks import Ranks
from .base import ADVANTAGES, Advantages, FloatArray, centred, deviation, rewards


@dataclass(frozen=True)
class PassAtK(CheckedOptions):
    """What an episode adds to the best reward of k: the baseline is the best of the k - 1 others (arXiv 2503.19595).

    With ``k`` below the size of the group, it is the mean over all choices of the others, the leave-one-out estimator
    of PKPO (arXiv 2505.15201).

    Args:
        k: Attempts of which the best counts, at least 2; ``None``, and a number above the size of the group, is the
            size of the group.
        normalize: Divide by the deviation of the group's rewards over n - 1, as verl does unless told otherwise.
        eps: Added to that deviation.
    """

    least: ClassVar[int] = 2
    k: int | None = option(None, least=2)
    normalize: bool = False
    eps: float = option(1e-4, least=0)

    def __call__(self, groups: Sequence[Sequence[Episode]], ranks: Ranks) -> Advantages:
        """See ``Advantage``."""
        return [list(map(float, self._gains(rewards(group)))) for group in groups]

    def _gains(self, values: FloatArray) -> FloatArray:
        count = len(values)
        k = min(self.k or count, count)
        gains = np.zeros(count)
        if k < 2 or not centred(values).any():
            return gains
        order = np.argsort(values, kind="stable")
        ascending = values[order]
        # The best of k - 1 others is the j-th of them in so many of the cases; only worse ones leave a gain.
        chance = np.array([math.comb(j, k - 2) / math.comb(count - 1, k - 1) for j in range(count)])
        below = np.cumsum(chance) - chance
        gains[order] = ascending * below - (np.cumsum(chance * ascending) - chance * ascending)
        return gains / (deviation(values) + self.eps) if self.normalize else gains


ADVANTAGES.register("pass_at_k", PassAtK)
