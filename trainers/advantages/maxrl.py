"""``maxrl``: the reward minus the group's mean, divided by the mean: MaxRL (arXiv 2602.02710).

A = (r - mean) / mean. The group's mean of A times the score function (the gradient of log pi) is the mean score
function of the successful episodes minus that of all episodes. It is an unbiased gradient of a truncated log-likelihood
of success: the truncated power series has as many terms as the group has episodes. The weight of a problem grows as 1 /
pass rate, whereas GRPO's grows as 1 / deviation. Use it to learn from rarely solved problems, with large groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rstar2_env.core.episode import Episode

from .base import ADVANTAGES, FloatArray, GroupAdvantage, centred, rewards


@dataclass(frozen=True)
class MaxRl(GroupAdvantage):
    r"""$\frac{r - \text{mean}}{\text{mean}}$, which gives rarely solved problems more weight: MaxRL (arXiv 2602.02710).

    The formula is derived for rewards of 0 and 1. If the mean of a group is not positive, all its advantages are zero,
    as in prime-rl (SkyRL divides by a small number).
    """

    def estimate(self, group: Sequence[Episode]) -> FloatArray:
        """Return the advantage of each episode of a group; see ``GroupAdvantage``."""
        values = rewards(group)
        return centred(values) / values.mean() if values.sum() > 0 else np.zeros_like(values)


ADVANTAGES.register("maxrl", MaxRl)
