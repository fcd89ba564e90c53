"""``opo``: the reward minus a baseline weighted by length: OPO (arXiv 2505.23585).

A = r - b with b = sum(length r) / sum(length) over the group, where the length counts the policy's tokens. It is the
minimum-variance baseline if the squared gradient of an episode grows with its length. The paper trains exactly
on-policy: one update per rollout, without clip, KL term or entropy bonus. Use it if the lengths of correct and wrong
episodes differ widely.
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
    """R - the mean reward weighted by length, the minimum-variance baseline: OPO (arXiv 2505.23585)."""

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
