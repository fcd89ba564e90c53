"""``gpg``: the reward minus the group's mean, scaled up to offset groups with equal rewards: GPG (arXiv 2504.02546).

A = a (r - mean) with a = B / (B - M), where B is the number of episodes in the batch and M the number of episodes in
groups with equal rewards. Groups with equal rewards have no gradient and would shrink the mean gradient of the batch.
The loss is the plain policy gradient, without a clip or a KL term. Use it to keep the size of the step if rejected
groups are not replaced.
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
    r"""$\frac{B}{B - M} (r - \text{mean})$, where $M$ of the $B$ episodes are in groups with equal rewards: GPG.

    The batch covers all processes and includes the groups that a selector rejected. The paper's formula
    (arXiv 2504.02546) also has a divisor; its value is 1, so it is omitted here.

    Args:
        count: Episodes that $B - M$ counts: those of ``"mixed"`` groups (with unequal rewards), as in the paper, or
            those with a ``"nonzero"`` reward, as in verl.
    """

    least: ClassVar[int] = 2
    of_batch: ClassVar[bool] = True
    count: Literal["mixed", "nonzero"] = "mixed"

    def __call__(self, groups: Sequence[Sequence[Episode]], ranks: Ranks) -> Advantages:
        """Return the advantage of each episode of each group; see ``Advantage``."""
        raw = [rewards(group) for group in groups]
        own = [centred(values) for values in raw]
        if self.count == "mixed":
            counted = sum(len(values) for values in own if values.any())
        else:
            counted = sum(int(np.count_nonzero(values)) for values in raw)
        every, counting = ranks.sum(np.array([sum(map(len, raw)), counted], dtype=np.float64))
        scale = float(every / max(counting, 1.0))
        return [[float(scale * value) for value in values] for values in own]


ADVANTAGES.register("gpg", Gpg)
