"""``policy_baseline``: rewards minus the mean of the policy's own episodes, for groups with demonstrations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rstar2_env.core.episode import Episode

from ..selectors.base import all_equal
from .base import ADVANTAGES, FloatArray, GroupAdvantage, rewards


@dataclass(frozen=True)
class PolicyBaseline(GroupAdvantage):
    r"""Reward minus the mean reward of the episodes that the policy wrote itself: RL-PLUS (arXiv 2508.00222).

    The advantage is $r - \frac{1}{\lvert P\rvert} \sum_{i \in P} r_i$, where $P$ is the set of the group's episodes
    that the policy wrote. Demonstrations of an expert, which are nearly always correct, would raise the mean of the
    group and lower the advantages of the policy's own correct answers. In a group without episodes of the policy, the
    mean covers all episodes. Without demonstrations, the result equals ``group_mean``.
    """

    def estimate(self, group: Sequence[Episode]) -> FloatArray:
        """Return the advantage of each episode of a group; see ``GroupAdvantage``."""
        values = rewards(group)
        if all_equal(group):
            return np.zeros_like(values)
        own = values[[episode.source == "policy" for episode in group]]
        result: FloatArray = values - (own if len(own) else values).mean()
        return result


ADVANTAGES.register("policy_baseline", PolicyBaseline)
