"""``reinforce``: the plain policy gradient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rstar2_env.core.options.declare import CheckedOptions

from .base import LOSSES, LossInput
from .tokens import Tensor, Tokens


@dataclass(frozen=True)
class ReinforceLoss(CheckedOptions):
    r"""$-A \log \pi$: REINFORCE (Williams 1992). The term has no ratio, so use it with one update per rollout."""

    needs: ClassVar[frozenset[LossInput]] = frozenset()
    policy_gradient: ClassVar[bool] = True

    def __call__(self, tokens: Tokens) -> Tensor:
        """Return the loss of each token, (B, T); see ``Term``."""
        return -tokens.advantage * tokens.logp


LOSSES.register("reinforce", ReinforceLoss)
