"""``ppo_clip``: the clipped surrogate, with ratios of tokens, turns or sequences, and optional further bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rstar2_env.core.options.declare import CheckedOptions, option

from .base import LOSSES, Anchored, Figures
from .tokens import RatioAnchor, RatioLevel, Tensor, Tokens, bounded_exp


@dataclass(frozen=True)
class PpoClip(Anchored, CheckedOptions):
    r"""$-\min(\text{ratio} \, A, \operatorname{clip}(\text{ratio}, 1 - \text{low}, 1 + \text{high}) \, A)$: PPO.

    The formula is equation 7 of arXiv 1707.06347. With ``level=sequence``, the ratio is GSPO's,
    $\exp(\text{mean of the log-ratios})$ (arXiv 2507.18071); its bounds must be set to about 3e-4 and 4e-4. The ratio
    of a turn is computed in the same way over the turn.

    Args:
        low: A ratio is clipped from below at $1 - \text{low}$ if the advantage is negative; ``None`` does not clip.
        high: A ratio is clipped from above at $1 + \text{high}$ if the advantage is positive; ``None`` does not clip.
            The default is larger than ``low``: clip-higher (DAPO, arXiv 2503.14476, section 3.1).
        two_sided: Maximum ratio for either sign of the advantage (INTELLECT-2, arXiv 2505.07291); TRL's ``delta``.
            ``None`` sets no maximum.
        dual: If the advantage $A$ is negative, the loss of the token is at most ``dual`` times $\lvert A\rvert$ (dual
            clip, arXiv 1912.09729, with 3); ``None`` sets no maximum.
        level: Whether a ratio belongs to a token, a turn or a sequence.
        token_gradient: Give the ratio of a turn or a sequence the gradient of the token's own log-probability:
            GSPO-token (arXiv 2507.18071, section 4.3), for token-level advantages; verl's form of GSPO. With one
            advantage per row and the aggregation ``seq_mean`` it makes no difference.
        anchor: Denominator of the ratio; ``"sampled"`` is the probability with which the engine drew the token. The
            separate correction for engine-trainer mismatch is then not applied.
    """

    low: float | None = option(0.2, least=0, most=1)
    high: float | None = option(0.28, least=0)
    two_sided: float | None = option(None, above=1)
    dual: float | None = option(None, above=1)
    level: RatioLevel = "token"
    token_gradient: bool = False
    anchor: RatioAnchor = "old"

    def __call__(self, tokens: Tokens) -> Tensor:
        """Return the loss of each token, (B, T); see ``Term``."""
        ratio, advantage = self._ratio(tokens), tokens.advantage
        free = ratio if self.two_sided is None else ratio.clamp(max=self.two_sided)
        gain = (free * advantage).minimum(ratio.clamp(*self.bounds) * advantage)
        if self.dual is not None:
            gain = gain.where(advantage >= 0, gain.maximum(self.dual * advantage))
        return -gain

    def figures(self, tokens: Tokens) -> Figures:
        """Return three shares of the policy's tokens: clipped at ``low``, ``high``, and ``two_sided`` or ``dual``."""
        ratio, advantage = self._ratio(tokens).detach(), tokens.advantage
        least, most = self.bounds
        outer = min((bound for bound in (self.two_sided, self.dual) if bound is not None), default=math.inf)
        clipped = {
            "clip/low": (ratio < least) & (advantage < 0),
            "clip/high": (ratio > most) & (advantage > 0),
            "clip/outer": (ratio > outer) & (advantage < 0),
        }
        return {name: tokens.sum_and_count(where) for name, where in clipped.items()}

    @property
    def bounds(self) -> tuple[float, float]:
        """Return the bounds of the ratio, outside which it is clipped."""
        return (0.0 if self.low is None else 1 - self.low, math.inf if self.high is None else 1 + self.high)

    def _ratio(self, tokens: Tokens) -> Tensor:
        own = tokens.log_ratio_to(self.anchor)
        log_ratio = tokens.pooled(own, self.level)
        if self.token_gradient:
            log_ratio = log_ratio.detach() + (own - own.detach())
        return bounded_exp(log_ratio)


LOSSES.register("ppo_clip", PpoClip)
