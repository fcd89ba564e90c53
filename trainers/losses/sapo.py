"""``sapo``: a surrogate whose gradient fades smoothly away from a ratio of 1, instead of being clipped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rstar2_env.core.options.declare import CheckedOptions, option

from .base import LOSSES, Figures, LossInput
from .tokens import Tensor, Tokens, bounded_exp


@dataclass(frozen=True)
class Sapo(CheckedOptions):
    r"""$-\frac{4}{\tau} \operatorname{sigmoid}(\tau (\text{ratio} - 1)) A$, where $\tau$ depends on the sign of $A$.

    The term is Qwen's SAPO (arXiv 2511.20347). With $p = \operatorname{sigmoid}(\tau (\text{ratio} - 1))$, the gradient
    of a token is $4 p (1 - p) \, \text{ratio} \, A$: it equals the plain policy gradient at a ratio of 1, and shrinks
    as the ratio moves away from 1. Use it if hard clipping loses too many tokens, as with mixtures of experts. The
    gradient fades sooner with a larger $\tau$; the defaults let it fade sooner for negative advantages.

    Args:
        positive: The constant $\tau$ for tokens with a positive advantage.
        negative: The constant $\tau$ for all other tokens.
    """

    positive: float = option(1.0, above=0)
    negative: float = option(1.05, above=0)

    needs: ClassVar[frozenset[LossInput]] = frozenset({"old"})
    policy_gradient: ClassVar[bool] = True

    def __call__(self, tokens: Tokens) -> Tensor:
        """Return the loss of each token, (B, T); see ``Term``."""
        tau = self._tau(tokens)
        return -4 / tau * (tau * (bounded_exp(tokens.log_ratio) - 1)).sigmoid() * tokens.advantage

    def figures(self, tokens: Tokens) -> Figures:
        """Return the mean weight of a token relative to the plain policy gradient, 4 p (1 - p); see the class."""
        gate = (self._tau(tokens) * (bounded_exp(tokens.log_ratio.detach()) - 1)).sigmoid()
        return {"sapo/gate": tokens.sum_and_count(4 * gate * (1 - gate))}

    def _tau(self, tokens: Tokens) -> Tensor:
        advantage = tokens.advantage
        return advantage.new_full(advantage.shape, self.negative).masked_fill(advantage > 0, self.positive)


LOSSES.register("sapo", Sapo)
