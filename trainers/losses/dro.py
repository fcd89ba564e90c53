"""``dro``: a policy gradient regularized by the squared log-ratio instead of clipping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rstar2_env.core.options.declare import CheckedOptions, option

from .base import LOSSES, Anchored
from .tokens import RatioAnchor, Tensor, Tokens


@dataclass(frozen=True)
class Dro(Anchored, CheckedOptions):
    r"""$-(A \log \pi - \frac{\beta}{2} (\log \text{ratio})^2)$: DRO (arXiv 2405.19107).

    The square pulls every token back to its probability at sampling time, more strongly the further the probability has
    moved, so rows can be trained on many times without choosing a bound. The term also acts on rows with advantage
    zero, so these rows are not skipped, and no correction is applied. In the paper, the denominator of the ratio is a
    reference model's probability, and $A$ is the reward minus a learned value function. In Tinker, the denominator is
    the engine's probability, in verl the trainer's probability at sampling time (``anchor=old``); in both, $A$ is the
    advantage.

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
