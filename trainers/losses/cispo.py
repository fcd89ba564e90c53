"""``cispo``: bounded importance weights on the log-probability, so that every token keeps its gradient."""

from __future__ import annotations

from dataclasses import dataclass

from rstar2_env.core.options.declare import CheckedOptions, option

from .base import LOSSES, Anchored, Figures
from .tokens import RatioAnchor, Tensor, Tokens, bounded_exp


@dataclass(frozen=True)
class Cispo(Anchored, CheckedOptions):
    r"""$-\operatorname{sg}(\operatorname{clip}(\text{ratio}, 1 - \text{low}, 1 + \text{high})) A \log \pi$: CISPO.

    The term is from MiniMax-M1 (arXiv 2506.13585, equations 4 and 5); $\operatorname{sg}$ is the stop-gradient.
    Clipping the surrogate drops the gradient of rare tokens, whose probability changes most in the first update on
    them. This term bounds the weight of rare tokens and keeps their gradient; it suits many updates per rollout. The
    paper has no lower bound and tunes the upper bound. Implementations write the bounds in three ways: TRL caps the
    ratio itself (its ``epsilon_high``, 5 in ScaleRL, arXiv 2510.13786, is ``high=4``), verl clips it to the range from
    0.8 to 1.2 (``low=0.2,high=0.2``), SkyRL uses ``low=1,high=4``.

    Args:
        low: The weight is at least $1 - \text{low}$; ``None`` sets no lower bound.
        high: The weight is at most $1 + \text{high}$.
        anchor: Denominator of the ratio. With ``"sampled"``, the engine's probability, the separate correction for
            engine-trainer mismatch is not applied.
    """

    low: float | None = option(None, least=0, most=1)
    high: float = option(4.0, least=0)
    anchor: RatioAnchor = "old"

    def __call__(self, tokens: Tokens) -> Tensor:
        """Return the loss of each token, (B, T); see ``Term``."""
        weight = self._ratio(tokens).clamp(self._least, 1 + self.high)
        return -weight * tokens.advantage * tokens.logp

    def figures(self, tokens: Tokens) -> Figures:
        """Return the shares of the policy's tokens whose weight is at a bound."""
        ratio = self._ratio(tokens)
        low, high = ratio < self._least, ratio > 1 + self.high
        return {"clip/low": tokens.sum_and_count(low), "clip/high": tokens.sum_and_count(high)}

    @property
    def _least(self) -> float:
        return 0.0 if self.low is None else 1 - self.low

    def _ratio(self, tokens: Tokens) -> Tensor:
        return bounded_exp(tokens.log_ratio_to(self.anchor).detach())


LOSSES.register("cispo", Cispo)
