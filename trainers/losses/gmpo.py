"""``gmpo``: the geometric mean of ratios that are clipped per token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from rstar2_env.core.options.declare import CheckedOptions, option

from .base import LOSSES, Figures, LossInput
from .tokens import Tensor, Tokens, bounded_exp


@dataclass(frozen=True)
class Gmpo(CheckedOptions):
    r"""$-A \exp(\text{mean of the clipped log-ratios})$: GMPO (arXiv 2507.20673).

    A log-ratio is clipped at ``high`` from above if the advantage is positive, and at ``-low`` from below otherwise,
    and then averaged over the row. A few tokens with extreme ratios therefore neither dominate the objective, as in
    PPO's arithmetic mean, nor exclude the whole row, as with ``ppo_clip:level=sequence``. The bounds apply to the
    logarithm: the default keeps a ratio between $e^{-0.4}$ and $e^{0.4}$, as in the paper. Clipped tokens have no
    gradient. With the aggregation ``seq_mean``, the loss is the paper's objective.

    Args:
        low: The log-ratio is at least $-\text{low}$ if the advantage is negative; ``None`` does not clip.
        high: The log-ratio is at most ``high`` if the advantage is positive; ``None`` does not clip.
        level: Whether the mean is over a turn or a row; the paper uses ``sequence``.
    """

    low: float | None = option(0.4, least=0)
    high: float | None = option(0.4, least=0)
    level: Literal["turn", "sequence"] = "sequence"

    needs: ClassVar[frozenset[LossInput]] = frozenset({"old"})
    policy_gradient: ClassVar[bool] = True

    def __call__(self, tokens: Tokens) -> Tensor:
        """Return the loss of each token, (B, T); see ``Term``."""
        log_ratio = tokens.log_ratio
        above = log_ratio if self.high is None else log_ratio.clamp(max=self.high)
        below = log_ratio if self.low is None else log_ratio.clamp(min=-self.low)
        clipped = above.where(tokens.advantage > 0, below)
        return -tokens.advantage * bounded_exp(tokens.pooled(clipped, self.level))

    def figures(self, tokens: Tokens) -> Figures:
        """Return the shares of the policy's tokens that are clipped."""
        log_ratio, positive = tokens.log_ratio.detach(), tokens.advantage > 0
        low = (log_ratio < -(self.low or 0.0)) & ~positive & (self.low is not None)
        high = (log_ratio > (self.high or 0.0)) & positive & (self.high is not None)
        return {"clip/low": tokens.sum_and_count(low), "clip/high": tokens.sum_and_count(high)}


LOSSES.register("gmpo", Gmpo)
