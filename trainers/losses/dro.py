"""``dro``: a policy gradient regularized by the squared log-ratio instead of clipping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rstar2_env.core.options.declare import CheckedOptions, option

from .base import LOSSES, Anchored
from .tokens import RatioAnchor, Tensor, Tokens


@dataclass(frozen=True)
class Dro(Anchored, CheckedOptions):
    """-(A log pi - beta / 2 (log ratio)^2): DRO (arXiv 2405.19107).

    The square pulls every token back to its probability when it was sampled, more strongly the further it has moved, so
    rows can be trained on many times without choosing a bound. It also acts on rows without an advantage, so it does
    not count as a policy gradient here: all rows are computed, and no correction is applied. The paper uses a reference
    model and learns a value; Tinker uses the engine's probabilities, verl the trainer's (``anchor=old``), and both use
    the advantage.

    Args:
        beta: Weight of the squared log-ratio; 0.05 is Tinker's value, verl has no default.
        anchor: Denominator of the ratio.
    """

    beta: float = option(0.05, above=0)
    anchor: RatioAnchor = "sampled"

    policy_gradient: ClassVar[bool] = False

    def __call__(self, tokens: Tokens) -> Tensor:
        """Return the loss of each token, (B, T); see ``Term``."""
        return self.beta / 2 * tokens.log_ratio_to(self.anchor).square() - tokens.advantage * tokens.logp


LOSSES.register("dro", Dro)
