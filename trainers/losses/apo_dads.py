"""``apo_dads``: a KL term that is weaker for rarely solved problems (APO, arXiv 2506.21655)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from rstar2_env.core.options.declare import CheckedOptions, option

from .base import LOSSES, Figures, LossInput
from .kl import Kl
from .tokens import Tensor, Tokens


@dataclass(frozen=True)
class ApoDads(CheckedOptions):
    r"""``coef`` times the KL estimate $k_3$, weighted by difficulty where $A > 0$: APO's DADS (arXiv 2506.21655).

    If $d$ is the share of wrong episodes in the group, the weight is $1 - \exp(-e (1 - d))$ for $A > 0$, where $e$ is
    Euler's number: 0.907 for $d = 1/8$, 0.743 for 1/2, 0.288 for 7/8. The weight is 1 for $A \le 0$, and for groups
    that are all correct or all wrong. Correct answers to hard problems may thus move away from the reference model,
    while wrong answers stay close to it. Needs the column ``accuracy``, which every row of a run has. Use it with the
    advantage ``apo_stcr``.

    Args:
        coef: Weight in the loss, as in ``kl``.
    """

    coef: float = option(1e-3, least=0)

    needs: ClassVar[frozenset[LossInput]] = frozenset({"reference"})
    policy_gradient: ClassVar[bool] = False

    def __call__(self, tokens: Tokens) -> Tensor:
        """Return the loss of each token, (B, T); see ``Term``."""
        right = tokens.column("accuracy")
        mixed = (right > 0) & (right < 1) & (tokens.advantage > 0)
        weight = (1 - (-math.e * right).exp()).where(mixed, right.new_ones(()))
        return weight * Kl(coef=self.coef)(tokens)

    def figures(self, tokens: Tokens) -> Figures:
        """Return the metric ``kl``: the mean divergence, without ``coef`` and without the weights by difficulty."""
        return Kl().figures(tokens)


LOSSES.register("apo_dads", ApoDads)
