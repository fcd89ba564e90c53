"""``reinforce``: the reward itself, less the mean of the batch, or normalised over the batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from rstar2_env.core.episode import Episode
from rstar2_env.core.options import CheckedOptions, option

from ..ranks import Ranks
from ..selectors.base import EQUAL
from .base import ADVANTAGES, Advantages, moments, rewards


@dataclass(frozen=True)
class Reinforce(CheckedOptions):
    """The reward less a baseline that is the same for all episodes: REINFORCE (Williams 1992).

    It needs no group: an episode that is alone in its group trains like any other.

    Args:
        baseline: ``"none"``, or the mean reward of the ``"batch"``, over all processes.
        normalize: Divide by the batch's standard deviation over n - 1, as REINFORCE++ does (arXiv 2501.03262).
        eps: Added to that deviation.
    """

    least: ClassVar[int] = 1
    of_batch: ClassVar[bool] = True
    baseline: Literal["none", "batch"] = "batch"
    normalize: bool = False
    eps: float = option(1e-4, above=0)

    def __call__(self, groups: Sequence[Sequence[Episode]], ranks: Ranks) -> Advantages:
        """See ``Advantage``."""
        values = [rewards(group) for group in groups]
        mean, spread = moments(np.concatenate([*values, np.zeros(0)]), ranks)
        if self.baseline == "batch" and spread <= EQUAL * abs(mean):
            return [[0.0] * len(group) for group in groups]  # equal rewards, whose mean may be rounded
        baseline = mean if self.baseline == "batch" else 0.0
        scale = spread + self.eps if self.normalize else 1.0
        return [[float((value - baseline) / scale) for value in group] for group in values]


ADVANTAGES.register("reinforce", Reinforce)
