"""``reinforce``: the reward itself, or the reward minus the mean of the batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from rstar2_env.core.episode import Episode
from rstar2_env.core.options.declare import CheckedOptions

from ..ranks import Ranks
from ..selectors.base import EQUAL
from .base import ADVANTAGES, Advantages, moments, rewards


@dataclass(frozen=True)
class Reinforce(CheckedOptions):
    """$r - b$, the reward minus a baseline $b$ that is equal for all episodes: REINFORCE (Williams 1992).

    This advantage does not need groups: a group may have a single episode.

    Args:
        baseline: ``"none"``, or the mean reward of the ``"batch"``, over all processes.
    """

    least: ClassVar[int] = 1
    of_batch: ClassVar[bool] = True
    baseline: Literal["none", "batch"] = "batch"

    def __call__(self, groups: Sequence[Sequence[Episode]], ranks: Ranks) -> Advantages:
        """Return the advantage of each episode of each group; see ``Advantage``."""
        values = [rewards(group) for group in groups]
        mean, spread = moments(np.concatenate([*values, np.zeros(0)]), ranks)
        if self.baseline == "batch" and spread <= EQUAL * abs(mean):
            return [[0.0] * len(group) for group in groups]  # equal rewards, whose mean may have rounding errors
        baseline = mean if self.baseline == "batch" else 0.0
        return [[float(value - baseline) for value in group] for group in values]


ADVANTAGES.register("reinforce", Reinforce)
