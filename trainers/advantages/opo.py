"""``opo``: the reward minus a baseline weighted by length: OPO (arXiv 2505.23585).

A = r - b with b = sum(length r) / sum(length) over the group, where the length counts the policy's tokens. b is the
minimum-variance baseline if the squared gradient of an episode grows with its length. The paper trains exactly
on-policy: one update per rollout, without clip, KL term or entropy bonus. Use it if the lengths of correct and wrong
episodes differ widely.

The paper's b includes the episode's own reward, with a weight that depends on the episode's length; this biases the
gradient. With ``baseline="others"``, the sums are over the other episodes of the group, and the gradient is unbiased.
If the other episodes have no policy tokens, the baseline is the mean over the whole group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rstar2_env.core.episode import Episode

from .base import ADVANTAGES, FloatArray, GroupAdvantage, centred, rewards


@dataclass(frozen=True)
class Opo(GroupAdvantage):
    r"""Reward minus the group's mean reward weighted by length: OPO (arXiv 2505.23585).

    The advantage is $r - \frac{\sum_i l_i r_i}{\sum_i l_i}$ over the group, where $l_i$ is the number of policy tokens
    of episode $i$.

    Args:
        baseline: Episodes whose mean is subtracted: ``"all"`` episodes of the group, as in the paper, or ``"others"``,
            all except this episode.
    """

    baseline: Literal["all", "others"] = "all"

    def estimate(self, group: Sequence[Episode]) -> FloatArray:
        """Return the advantage of each episode of a group; see ``GroupAdvantage``."""
        values = centred(rewards(group))  # centred first, so that equal rewards give exact zeros
        lengths = np.array([episode.policy_tokens for episode in group], dtype=np.float64)
        if self.baseline == "all":
            return values - float(lengths @ values / lengths.sum()) if lengths.any() else values
        others = lengths.sum() - lengths
        weighed: FloatArray = lengths @ values - lengths * values
        found: FloatArray = values - np.divide(weighed, others, out=np.zeros_like(values), where=others > 0)
        return found


ADVANTAGES.register("opo", Opo)
