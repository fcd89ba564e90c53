"""``pass_at_k``: an episode's contribution to the best of k (arXiv 2503.19595, arXiv 2505.15201, arXiv 2508.10751).

A_i is the mean of max(r_i, b) - b over all choices of k - 1 other episodes of the group, where b is their best reward.
If k is the group size, A_i is the best reward minus the second-best reward for the best episode, and 0 for all other
episodes: verl's ``grpo_passk``. A_i gives an unbiased gradient of the expected best reward of k episodes. With
``baseline=all``, the mean best reward over all choices of k episodes is subtracted: Pass@k Training's analytical
advantage. Use it if many attempts will be made at each problem, and to keep the policy's answers diverse.
"""

# This module is longer than most parts because it implements three papers with different baselines.

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import option

from ..selectors.base import EQUAL
from .base import ADVANTAGES, FloatArray, GroupAdvantage, centred, deviation, rewards


@dataclass(frozen=True)
class PassAtK(GroupAdvantage):
    r"""Best of $k$ rewards, this episode's included, minus the best of the $k - 1$ other rewards (arXiv 2503.19595).

    The advantage is $\max(r, b) - b$ with the best reward $b$ of the $k - 1$ other episodes. If ``k`` is below the
    group size, the advantage is the mean of this value over all choices of $k - 1$ other episodes: the leave-one-out
    estimator of PKPO (arXiv 2505.15201).

    Args:
        k: Number of attempts per problem, at least 2; only the best attempt counts. ``None``, or a number above the
            group size, means the group size.
        baseline: The best of the ``"others"``, or the mean of the best over ``"all"`` choices of $k$ episodes, whether
            or not they include this one (Pass@k Training, arXiv 2508.10751); ``k`` must then be below the group size.
        normalize: Divide by a deviation: the deviation of the group's rewards (over $n - 1$), as verl does by default;
            with ``baseline=all``, the deviation of the best rewards over all choices of $k$, as Pass@k Training does.
        eps: Added to that deviation.
    """

    k: int | None = option(None, least=2)
    baseline: Literal["others", "all"] = "others"
    normalize: bool = False
    eps: float = option(1e-4, least=0)

    def __post_init__(self) -> None:
        """Check the options.

        Raises:
            ConfigurationError: An option is out of its range, or ``baseline=all`` has no ``k``.
        """
        super().__post_init__()
        if self.baseline == "all" and self.k is None:
            raise ConfigurationError(
                "baseline=all compares all choices of k episodes of a group. If k is the group size, "
                "there is only one choice and nothing to compare it with: set k below the group size, "
                "such as k=4."
            )

    def estimate(self, group: Sequence[Episode]) -> FloatArray:
        """Return the advantage of each episode of a group; see ``GroupAdvantage``."""
        values = rewards(group)
        count = len(values)
        k = min(self.k or count, count)
        gains = np.zeros(count)
        if not centred(values).any():
            return gains
        order = np.argsort(values, kind="stable")
        best = values[order]
        # Probability that the best of k - 1 others is the j-th value.
        others = _chances(count - 1, k - 1)
        worse = np.concatenate([[0.0], np.cumsum(others)])  # probability that all others are worse than this episode
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
    """Return, for each of ``count`` ascending values, the probability that it is the best of k drawn values."""
    return np.array([math.comb(j, k - 1) / math.comb(count, k) for j in range(count)])


ADVANTAGES.register("pass_at_k", PassAtK)
