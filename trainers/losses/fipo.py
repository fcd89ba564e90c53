"""``fipo``: the clipped surrogate loss, with token weights that depend on how the policy changed on later tokens."""

# This module is longer than most parts because it sums the following tokens with a decay before weighting.

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from rstar2_env.core.options.declare import CheckedOptions, option

from .base import LOSSES, Figures, LossInput
from .ppo_clip import PpoClip
from .tokens import Tensor, Tokens, bounded_exp


@dataclass(frozen=True)
class Fipo(CheckedOptions):
    r"""``ppo_clip`` times $\operatorname{sg}(\operatorname{clip}(\exp F_t, 1 - \text{below}, 1 + \text{above}))$: FIPO.

    The exponent is $F_t = \sum_{k \ge t} \gamma^{k - t} \log \text{ratio}_k$ (arXiv 2603.19835); $\operatorname{sg}$ is
    the stop-gradient. A token has a larger weight if the tokens after it have become more probable since the rollout,
    and a smaller weight if they have become less probable. The term thus assigns credit within a row without a value
    model. The decay is $\gamma = 2^{-1 / h}$ with the half-life $h$. The sum is over the policy's tokens of the row,
    without tokens whose ratio is above ``dual``; the distance $k - t$ counts policy tokens. If the advantage is
    negative and the ratio above ``safety``, the weight is clipped to the range from 0.8 to 1. In the first update on a
    rollout, all weights are 1. ms-swift uses ``below=0`` unless ``fipo_clip_high_only`` is false.

    Args:
        half_life: Distance in tokens at which a token's weight in the sum is halved.
        below: The weight is at least $1 - \text{below}$.
        above: The weight is at most $1 + \text{above}$.
        safety: Ratio above which the weight of a token with a negative advantage is at most 1; ``None`` for no limit.
        low: See ``ppo_clip``.
        high: See ``ppo_clip``.
        dual: See ``ppo_clip``; 10 is the authors' value.
    """

    half_life: float = option(32.0, above=0, unit="tokens")
    below: float = option(0.2, least=0, most=1)
    above: float = option(0.2, least=0)
    safety: float | None = option(4.0, above=1)
    low: float | None = option(0.2, least=0, most=1)
    high: float | None = option(0.28, least=0)
    dual: float | None = option(10.0, above=1)

    needs: ClassVar[frozenset[LossInput]] = frozenset({"old"})
    policy_gradient: ClassVar[bool] = True

    def __call__(self, tokens: Tokens) -> Tensor:
        """Return the loss of each token, (B, T); see ``Term``."""
        return self._surrogate(tokens) * self._weight(tokens)

    def figures(self, tokens: Tokens) -> Figures:
        """Return the metrics of ``ppo_clip``, and the mean weight."""
        return self._surrogate.figures(tokens) | {"fipo/weight": tokens.sum_and_count(self._weight(tokens))}

    @property
    def _surrogate(self) -> PpoClip:
        return PpoClip(self.low, self.high, dual=self.dual)

    def _weight(self, tokens: Tokens) -> Tensor:
        log_ratio = tokens.log_ratio.detach()
        counted = log_ratio if self.dual is None else log_ratio.masked_fill(log_ratio > math.log(self.dual), 0.0)
        weight = bounded_exp(self._future(counted, tokens.mask)).clamp(1 - self.below, 1 + self.above)
        if self.safety is None:
            return weight
        unsafe = (tokens.advantage < 0) & (log_ratio > math.log(self.safety))
        return weight.clamp(0.8, 1.0).where(unsafe, weight)

    def _future(self, values: Tensor, mask: Tensor) -> Tensor:
        """Return, for each policy token, the discounted sum of the values at this token and at later ones in the row.

        Args:
            values: (B, T), 0 off the mask.
            mask: (B, T).
        """
        order = mask.byte().argsort(dim=-1, stable=True)  # the policy's tokens last, in their order
        total, step = values.gather(-1, order), 1
        while step < total.shape[-1]:
            # Each round doubles how many tokens a sum reaches.
            reached = total.clone()
            reached[..., :-step] += 2 ** (-step / self.half_life) * total[..., step:]
            total, step = reached, 2 * step
        return total.new_zeros(total.shape).scatter(-1, order, total)


LOSSES.register("fipo", Fipo)
