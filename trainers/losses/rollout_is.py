"""``rollout_is``: importance sampling against the engine; drops tokens whose ratio is too small or too large."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rstar2_env.core.options.declare import CheckedOptions, option

from .base import LOSSES, Figures, LossInput
from .tokens import Tensor, Tokens, bounded_exp


@dataclass(frozen=True)
class RolloutIs(CheckedOptions):
    r"""$-\operatorname{sg}(\text{ratio}) A \log \pi$ where $1 - \text{low} < \text{ratio} < 1 + \text{high}$, else 0.

    The term is from GLM-5 (arXiv 2602.15763); $\operatorname{sg}$ is the stop-gradient. The denominator of the ratio is
    the engine's probability of the token, so no forward pass under the sampling weights is needed, and the separate
    correction for engine-trainer mismatch is not applied. Use the term for rollouts that run ahead of the optimizer.
    Unlike clipping, the term drops tokens outside either bound, independently of their advantage. The bounds are
    SkyRL's.

    Args:
        low: A token is dropped if its ratio is at most $1 - \text{low}$.
        high: A token is dropped if its ratio is at least $1 + \text{high}$.
    """

    low: float = option(0.2, above=0, most=1)
    high: float = option(0.2, above=0)

    needs: ClassVar[frozenset[LossInput]] = frozenset()
    policy_gradient: ClassVar[bool] = True
    corrected: ClassVar[bool] = False

    def __call__(self, tokens: Tokens) -> Tensor:
        """Return the loss of each token, (B, T); see ``Term``."""
        ratio = self._ratio(tokens)
        return -ratio.masked_fill(self._dropped(ratio), 0.0) * tokens.advantage * tokens.logp

    def figures(self, tokens: Tokens) -> Figures:
        """Return the share of the policy's tokens that are dropped."""
        return {"clip/dropped": tokens.sum_and_count(self._dropped(self._ratio(tokens)))}

    def _ratio(self, tokens: Tokens) -> Tensor:
        return bounded_exp(tokens.log_ratio_to("sampled").detach())

    def _dropped(self, ratio: Tensor) -> Tensor:
        return (ratio <= 1 - self.low) | (ratio >= 1 + self.high)


LOSSES.register("rollout_is", RolloutIs)
