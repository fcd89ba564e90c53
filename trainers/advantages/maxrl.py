"""``maxrl``: the reward less the group's mean, over the mean: MaxRL (arXiv 2602.02710).

A = (r - mean) / mean. Summed over the group, this is the mean score of the successful episodes alone, less the mean
score of all of them: an unbiased gradient of the log-likelihood of a success, cut off after as many terms as the group
has episodes. The weight of a problem grows as 1 / pass rate, where GRPO's grows as 1 / deviation: choose it to learn
from problems that are rarely solved, with large groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rstar2_env.core.episode import Episode
from rstar2_env.core.options.declare import CheckedOptions

from ..ranks import Ranks
from .base import ADVANTAGES, Advantages, FloatArray, centred, rewards


@dataclass(frozen=True)
class MaxRl(CheckedOptions):
    """(r - mean) / mean: a problem weighs the more the rarer it is solved, MaxRL (arXiv 2602.02710).

    It is derived for rewards of 0 and 1. A group whose mean is not positive gets zeros, as in prime-rl (SkyRL divides
    by a small number).
    """

    least: ClassVar[int] = 2

    def __call__(self, groups: Sequence[Sequence[Episode]], ranks: Ranks) -> Advantages:
        """See ``Advantage``."""
        return [list(map(float, _over_mean(rewards(group)))) for group in groups]


def _over_mean(values: FloatArray) -> FloatArray:
    mean = float(values.mean()) if len(values) else 0.0
    return centred(values) / mean if mean > 0 else np.zeros_like(values)


ADVANTAGES.register("maxrl", MaxRl)
