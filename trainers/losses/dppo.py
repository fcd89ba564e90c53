"""``dppo``: a trust region on probabilities instead of their ratio."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rstar2_env.core.options.declare import CheckedOptions, option

from .base import LOSSES, Anchored, Figures
from .tokens import RatioAnchor, Tensor, Tokens, bounded_exp

_LEAST = 1e-12
"""Minimum total probability of the tokens that were not drawn, so that its logarithm is finite."""
_BOUNDS = {"tv": 0.15, "kl": 0.05}
"""Default bound for each divergence, from the authors of DPPO."""


@dataclass(frozen=True)
class Dppo(Anchored, CheckedOptions):
    r"""$-\operatorname{sg}(\min(\text{ratio}, \text{cap})) A \log \pi$ on tokens whose divergence is small: DPPO.

    The paper is arXiv 2602.04879; $\operatorname{sg}$ is the stop-gradient. The divergence is between distributions
    over two outcomes: the drawn token, and any other token. It is the total variation $\lvert\pi - \mu\rvert$, or the
    Kullback-Leibler divergence $\operatorname{KL}(\mu, \pi)$. A token is dropped if its divergence is above the bound
    and an update would increase it: $\pi > \mu$ and $A > 0$, or $\pi < \mu$ and $A < 0$. A bound on the ratio excludes
    rare tokens early, since their ratio grows quickly, and allows large changes of frequent tokens; a bound on the
    divergence has neither effect. $\mu$ is the engine's probability, so the separate correction for engine-trainer
    mismatch is not applied.

    The defaults are the authors' bounds, 0.15 (tv) and 0.05 (kl); SkyRL and prime-rl (its default loss) use 0.2 (tv).
    verl uses ``anchor=old`` and, by default, a cap of 3 (its option ``clip_ratio_c``).

    Args:
        divergence: ``"tv"`` or ``"kl"``.
        low: Bound for negative advantages; ``None`` for the authors' bound.
        high: Bound for positive advantages; ``None`` for the authors' bound.
        cap: Maximum weight of a token.
        either: Drop a token above its bound independently of the advantage: prime-rl's ``ipo``, with bounds of 0.1.
        anchor: The probabilities used as $\mu$.
    """

    divergence: Literal["tv", "kl"] = "tv"
    low: float | None = option(None, least=0)
    high: float | None = option(None, least=0)
    cap: float = option(20.0, least=1)
    either: bool = False
    anchor: RatioAnchor = "sampled"

    def __call__(self, tokens: Tokens) -> Tensor:
        """Return the loss of each token, (B, T); see ``Term``."""
        weight = bounded_exp(tokens.log_ratio_to(self.anchor).detach()).clamp(max=self.cap)
        return -weight.masked_fill(self._dropped(tokens), 0.0) * tokens.advantage * tokens.logp

    def figures(self, tokens: Tokens) -> Figures:
        """Return the share of the policy's tokens that are dropped."""
        return {"clip/dropped": tokens.sum_and_count(self._dropped(tokens))}

    def _dropped(self, tokens: Tokens) -> Tensor:
        logp = tokens.logp.detach()
        anchor = logp - tokens.log_ratio_to(self.anchor).detach()
        apart, up = self._divergence(logp, anchor), tokens.advantage > 0
        usual = _BOUNDS[self.divergence]
        low, high = (usual if bound is None else bound for bound in (self.low, self.high))
        away = (logp > anchor).where(up, logp < anchor) | self.either
        return away & (apart > high).where(up, apart > low)

    def _divergence(self, logp: Tensor, anchor: Tensor) -> Tensor:
        pi, mu = logp.exp(), anchor.exp()
        if self.divergence == "tv":
            return (pi - mu).abs()
        others, anchored = ((-one.expm1()).clamp(min=_LEAST) for one in (logp, anchor))
        return mu * (anchor - logp) + anchored * (anchored.log() - others.log())


LOSSES.register("dppo", Dppo)
