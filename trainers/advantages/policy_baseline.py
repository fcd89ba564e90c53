"""``policy_baseline``: rewards minus the mean of the policy's own episodes, for groups that also have others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rstar2_env.core.episode import Episode
from rstar2_env.core.options.declare import CheckedOptions

from ..ranks import Ranks
from ..selectors.base import all_equal
from .base import ADVANTAGES, Advantages, FloatArray, rewards


@dataclass(frozen=True)
class PolicyBaseline(CheckedOptions):
    """R - mean of the episodes whose source is the policy: RL-PLUS (arXiv 2508.00222).

    An expert's solution, which is nearly always correct, would raise the mean, and the policy's own correct answers
    would then earn little. In a group without episodes of the policy, all episodes count. Without others it equals
    ``group_mean``.
    """

    least: ClassVar[int] = 2

    def __call__(self, groups: Sequence[Sequence[Episode]], ranks: Ranks) -> Advantages:
        """See ``Advantage``."""
        return [self._of(group) for group in groups]

    def _of(self, group: Sequence[Episode]) -> list[float | FloatArray]:
        if all_equal(group):
            return [0.0] * len(group)
        values = rewards(group)
        own = values[[episode.source == "policy" for episode in group]]
        return [float(value) for value in values - (own if len(own) else values).mean()]


ADVANTAGES.register("policy_baseline", PolicyBaseline)
