"""``apo_dads``: a KL term that lets go of what is solved rarely (APO, arXiv 2506.21655)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rstar2_env.core.options.declare import CheckedOptions, option

from .base import LOSSES, Figures, Need
from .kl import Kl
from .tokens import Tokens

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class ApoDads(CheckedOptions):
    """coef times k3, weighted where the advantage is positive by difficulty: APO's DADS (arXiv 2506.21655).

    With d the share of the group that is wrong, the weight is 1 - exp(-e (1 - d)) where A > 0: 0.907 for d = 1/8, 0.743
    for 1/2, 0.288 for 7/8. It is 1 where A <= 0, and where all or none of the group are right. So right answers to hard
    problems may move away from the reference model, and wrong ones stay close to it. Needs the column ``accuracy``,
    which every row of a run has. Meant with the advantage ``apo_stcr``.

    Args:
        coef: Its weight in the loss, as that of ``kl``.
    """

    coef: float = option(1e-3, least=0)

    needs: ClassVar[frozenset[Need]] = frozenset({"reference"})
    policy_gradient: ClassVar[bool] = False

    def __call__(self, tokens: Tokens) -> Tensor:
        """See ``Term``."""
        right = tokens.column("accuracy")
        mixed = (right > 0) & (right < 1) & (tokens.advantage > 0)
        weight = (1 - (-math.e * right).exp()).where(mixed, right.new_ones(()))
        return weight * Kl(coef=self.coef)(tokens)

    def figures(self, tokens: Tokens) -> Figures:
        """The divergence, without its weights, as ``kl`` has it."""
        return Kl().figures(tokens)


LOSSES.register("apo_dads", ApoDads)
