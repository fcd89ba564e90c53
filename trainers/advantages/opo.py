"""``opo``: the reward minus a baseline weighted by length: OPO (arXiv 2505.23585).

A = r - b with b = sum(length r) / sum(length) over the group, where the length counts the policy's tokens. b is the
minimum-variance baseline if the squared gradient of an episode grows with its length. The paper trains exactly
on-policy: one update per rollout, without clip, KL term or entropy bonus. Use it if the lengths of correct and wrong
episodes differ widely.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rstar2_env.core.episode import Episode

from .base import ADVANTAGES, FloatArray, GroupAdvantage, centred, rewards


@dataclass(frozen=True)
class Opo(GroupAdvantage):
    """Reward minus the group's mean reward weighted by length: OPO (arXiv 2505.23585)."""

    def estimate(self, group: Sequence[Episode]) -> FloatArray:
        """Return the advantage of each episode of a group; see ``GroupAdvantage``."""
        values = centred(rewards(group))  # centred first, so that equal rewards give exact zeros
        lengths = np.array([episode.policy_tokens for episode in group], dtype=np.float64)
        return values - float(lengths @ values / lengths.sum()) if lengths.any() else values


ADVANTAGES.register("opo", Opo)
