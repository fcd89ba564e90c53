"""``topr``: trains on positive examples like SFT, and on negative examples with importance weights of at most 1."""

from __future__ import annotations

from dataclasses import dataclass

from rstar2_env.core.options.declare import CheckedOptions

from .base import LOSSES, Anchored, Figures
from .tokens import RatioAnchor, RatioLevel, Tensor, Tokens, bounded_exp


@dataclass(frozen=True)
class Topr(Anchored, CheckedOptions):
    r"""$-A \log \pi$ where $A \ge 0$, else $-\operatorname{sg}(\operatorname{clip}(\text{ratio}, 0, 1)) A \log \pi$.

    Correct answers are learned even if they have become improbable; wrong answers are unlearned only while the policy
    still produces them, so log-probabilities do not diverge. The term is from TOPR (arXiv 2503.14286);
    $\operatorname{sg}$ is the stop-gradient. Use the term for rows that are trained on many times, or fully offline,
    without a KL term. By default, the ratio is the row's probability divided by its sampling probability, as in the
    paper; ROLL divides the probability of each token by the trainer's probability at sampling time
    (``level=token,anchor=old``).

    Args:
        level: Whether a ratio belongs to a token, a turn or a sequence; the ratio of a turn or a sequence is the
            product of the ratios of its tokens.
        anchor: Denominator of the ratio. With ``"sampled"``, the engine's probability, the separate correction for
            engine-trainer mismatch is not applied.
    """

    level: RatioLevel = "sequence"
    anchor: RatioAnchor = "sampled"

    def __call__(self, tokens: Tokens) -> Tensor:
        """Return the loss of each token, (B, T); see ``Term``."""
        return -self._weight(tokens) * tokens.advantage * tokens.logp

    def figures(self, tokens: Tokens) -> Figures:
        """Return the mean weight of tokens with a negative advantage."""
        negative = tokens.mask & (tokens.advantage < 0)
        return {"topr/negative_weight": tokens.sum_and_count(self._weight(tokens), negative)}

    def _weight(self, tokens: Tokens) -> Tensor:
        log_ratio = tokens.pooled(tokens.log_ratio_to(self.anchor).detach(), self.level, "sum")
        return bounded_exp(log_ratio.clamp(max=0.0)).masked_fill(tokens.advantage >= 0, 1.0)


LOSSES.register("topr", Topr)
