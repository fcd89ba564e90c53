"""``pass_at_k``: what an episode adds to the best of k (arXiv 2503.19595, arXiv 2505.15201, arXiv 2508.10751).

A_i = the mean, over all choices of k - 1 others of the group, of max(r_i, the best of them) - the best of them. With k
= the group, that is the best reward less the second best for the best episode, and 0 for all others: verl's
``grpo_passk``. It is an unbiased gradient of the expected best reward of k episodes. With ``baseline=all``, what is
subtracted is the mean best reward of all choices of k episodes: Pass@k Training's analytical advantage. Choose it where
many attempts will be made at each problem, and to keep the policy's answers diverse. Longer than most parts, since
three papers share it, whose baselines differ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import CheckedOptions, option

from ..ranks import Ranks
from ..selectors.base import EQUAL
from .base import ADVANTAGES, Advantages, FloatArray, centred, deviation, rewards


@dataclass(frozen=True)
class PassAtK(CheckedOptions):
    """What an episode adds to the best reward of k: the baseline is the best of the k - 1 others (arXiv 2503.19595).

    With ``k`` below the size of the group, it is the mean over all choices of the others, the leave-one-out estimator
    of PKPO (arXiv 2505.15201).

    Args:
        k: Attempts of which the best counts, at least 2; ``None``, and a number above the size of the group, is the
            size of the group.
        baseline: The best of the ``"others"``, or the mean over ``"all"`` choices of k episodes, with or without this
            one (Pass@k Training, arXiv 2508.10751); then k must be below the size of the group.
        normalize: Divide by a deviation: that of the group's rewards over n - 1, as verl does unless told otherwise;
            with ``baseline=all`` that of the best rewards of all choices of k, as Pass@k Training does.
        eps: Added to that deviation.
    """

    least: ClassVar[int] = 2
    k: int | None = option(None, least=2)
    baseline: Literal["others", "all"] = "others"
    normalize: bool = False
    eps: float = option(1e-4, least=0)

    def __post_init__(self) -> None:
        """Check the options.

        Raises:
            ConfigurationError: One is out of its range, or ``baseline=all`` has no ``k``.
        """
        super().__post_init__()
        if self.baseline == "all" and self.k is None:
            raise ConfigurationError(
                "baseline=all needs k below the size of the group, such as k=4: with all of the group there is but one "
                "choice, and nothing to compare."
            )

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
        best = values[order]
        # Of k - 1 others the best is the j-th of them in so many of the cases.
        others = _chances(count - 1, k - 1)
        worse = np.concatenate([[0.0], np.cumsum(others)])  # that they are all worse than this one
        if self.baseline == "others":
            gains[order] = best * worse - np.concatenate([[0.0], np.cumsum(others * best[:-1])])
            return gains / (deviation(values) + self.eps) if self.normalize else gains
        better = np.cumsum((others * best[1:])[::-1])[::-1]
        whole = _chances(count, k)
        mean = whole @ best
        spread = math.sqrt(whole @ np.square(best - mean))
        if spread <= EQUAL * abs(mean):
            return gains  # every choice has the same best
        gains[order] = best * worse + np.concatenate([better, [0.0]]) - mean
        return gains / (spread + self.eps) if self.normalize else gains


def _chances(count: int, k: int) -> FloatArray:
    """The chance that the j-th of so many, from the worst, is the best of k of them."""
    return np.array([math.comb(j, k - 1) / math.comb(count, k) for j in range(count)])


ADVANTAGES.register("pass_at_k", PassAtK)
