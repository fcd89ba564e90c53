"""``dro``: a policy gradient that is held by the square of the log-ratio instead of clipping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rstar2_env.core.options.declare import CheckedOptions, option

from .base import LOSSES, Need
from .tokens import Anchor, Tokens

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Dro(CheckedOptions):
    """-(A log pi - beta / 2 (log ratio)^2): DRO (arXiv 2405.19107).

    The square pulls every token back to the probability that it was drawn with, the more the further it has moved, so
    that rows can be trained on many times without a bound to choose. It acts on rows without an advantage too, so it is
    no policy gradient here: all rows are computed, and nothing is corrected. The paper compares with a reference
    model and learns a value; Tinker compares with the engine's probabilities, verl with the trainer's
    (``anchor=old``), and both take the advantage.

    Args:
        beta: Weight of the square; 0.05 is Tinker's, verl has no default.
        anchor: What the ratio is against.
    """

    beta: float = option(0.05, above=0)
    anchor: Anchor = "sampled"

    policy_gradient: ClassVar[bool] = False

    @property
    def needs(self) -> frozenset[Need]:
        """See ``Term``."""
        return frozenset({"old"} if self.anchor == "old" else ())

    def __call__(self, tokens: Tokens) -> Tensor:
        """See ``Term``."""
        return self.beta / 2 * tokens.log_ratio_to(self.anchor).square() - tokens.advantage * tokens.logp


LOSSES.register("dro", Dro)
