"""``gpg``: the reward less the group's mean, scaled up for groups without a difference: GPG (arXiv 2504.02546).

A = a (r - mean) with a = B / (B - M), where B counts the episodes of the batch and M those of groups whose rewards are
all equal: these have no gradient, and would shrink that of the others in a mean over all. The loss is the plain policy
gradient, without a clip or a KL term. Choose it instead of refilling rejected groups, to keep the size of the step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from rstar2_env.core.episode import Episode
from rstar2_env.core.options.declare import CheckedOptions

from ..ranks import Ranks
from .base import ADVANTAGES, Advantages, centred, rewards


@dataclass(frozen=True)
class Gpg(CheckedOptions):
    """B / (B - M) (r - mean), where M of B episodes have no gradient: GPG (arXiv 2504.02546).

    The batch is that of all processes, with the groups that a selector rejected. The paper's divisor of the advantage
    is 1, so there is none here.

    Args:
        count: What makes B - M: the episodes of groups that are ``"mixed"``, as in the paper, or those with a reward
            that is ``"nonzero"``, as in verl.
    """

    least: ClassVar[int] = 2
    of_batch: ClassVar[bool] = True
    count: Literal["mixed", "nonzero"] = "mixed"

    def __call__(self, groups: Sequence[Sequence[Episode]], ranks: Ranks) -> Advantages:
        """See ``Advantage``."""
        raw = [rewards(group) for group in groups]
        own = [centred(values) for values in raw]
        if self.count == "mixed":
            counted = sum(len(values) for values in own if values.any())
        else:
            counted = sum(int(np.count_nonzero(values)) for values in raw)
        every, counting = ranks.sum(np.array([sum(map(len, raw)), counted], dtype=np.float64))
        scale = float(every / counting) if counting else 0.0
        return [[float(scale * value) for value in values] for values in own]


ADVANTAGES.register("gpg", Gpg)
