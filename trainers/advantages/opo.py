"""``opo``: the reward less a baseline in which long episodes weigh more: OPO (arXiv 2505.23585).

A = r - b with b = sum(length r) / sum(length) over the group, where the length counts the policy's tokens. It is the
baseline of least variance where the squared gradient of an episode grows with its length. The paper trains exactly on
policy: one update a rollout, no clip, no KL term and no entropy bonus. Choose it where the lengths of right and wrong
episodes differ a lot.
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
class Opo(CheckedOptions):
    """R - the mean reward weighted by length, the baseline of least variance: OPO (arXiv 2505.23585)."""

    least: ClassVar[int] = 2

    def __call__(self, groups: Sequence[Sequence[Episode]], ranks: Ranks) -> Advantages:
        """See ``Advantage``."""
        return [_less_weighted(group) for group in groups]


def _less_weighted(group: Sequence[Episode]) -> list[float | FloatArray]:
    # Of values that are centred already, so that equal rewards give exact zeros.
    values = centred(rewards(group))
    lengths = np.array([episode.policy_tokens for episode in group], dtype=np.float64)
    baseline = float(lengths @ values / lengths.sum()) if lengths.any() else 0.0
    return [float(value - baseline) for value in values]


ADVANTAGES.register("opo", Opo)
