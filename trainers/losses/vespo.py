"""``vespo``: policy gradient weighted by a smooth function of a sequence's importance weight, instead of clipping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from rstar2_env.core.options.declare import CheckedOptions, option

from .base import LOSSES, Figures, LossInput
from .tokens import LARGEST_LOG, Tensor, Tokens


@dataclass(frozen=True)
class Vespo(CheckedOptions):
    r"""$-\operatorname{sg}(\phi(w)) A \log \pi$, with $\phi(w) = w^k \exp(k' (1 - w))$: VESPO (arXiv 2602.10693).

    $w$ is the product of all ratios of a row against the engine's probabilities. $\phi(1) = 1$, so on-policy rows have
    the same loss as with ``reinforce``; far from 1 on either side, $\phi$ fades to 0, so no bound has to be chosen. The
    term suits rows that are many updates old. $k$ is ``k_positive`` or ``k_negative``, and $k'$ is ``decay_positive``
    or ``decay_negative``, depending on the sign of the advantage (TRL's ``vespo_lambda_...`` is $k'$).
    $\operatorname{sg}$ is the stop-gradient. The separate correction for engine-trainer mismatch is not applied.

    Args:
        k_positive: Exponent $k$ for rows with a positive advantage.
        decay_positive: Rate $k'$ of the exponential for rows with a positive advantage.
        k_negative: Exponent $k$ for all other rows.
        decay_negative: Rate $k'$ of the exponential for all other rows.
        level: Whether the product is over a turn or a row; the paper uses ``sequence``.
    """

    k_positive: float = option(2.0, least=0)
    decay_positive: float = option(3.0, least=0)
    k_negative: float = option(3.0, least=0)
    decay_negative: float = option(2.0, least=0)
    level: Literal["turn", "sequence"] = "sequence"

    needs: ClassVar[frozenset[LossInput]] = frozenset()
    policy_gradient: ClassVar[bool] = True
    corrected: ClassVar[bool] = False

    def __call__(self, tokens: Tokens) -> Tensor:
        """Return the loss of each token, (B, T); see ``Term``."""
        return -self._weight(tokens) * tokens.advantage * tokens.logp

    def figures(self, tokens: Tokens) -> Figures:
        """Return the mean weight of the policy's tokens."""
        return {"vespo/weight": tokens.sum_and_count(self._weight(tokens))}

    def _weight(self, tokens: Tokens) -> Tensor:
        log = tokens.pooled(tokens.log_ratio_to("sampled").detach(), self.level, "sum")
        log = log.clamp(-LARGEST_LOG, LARGEST_LOG)
        # In logarithms, since the factors overflow long before their product does.
        away = 1 - log.exp()
        positive = self.k_positive * log + self.decay_positive * away
        negative = self.k_negative * log + self.decay_negative * away
        return positive.where(tokens.advantage > 0, negative).exp()


LOSSES.register("vespo", Vespo)
