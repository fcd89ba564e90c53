"""Corrections for differences between engine and trainer: ``none``, ``truncate``, ``mask``, ``geometric``.

The ratio of a token is its probability in the trainer divided by its probability in the engine, both under the weights
that sampled the token. The ratio of a turn or a sequence is the product of its tokens' ratios, or their geometric mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from rstar2_env.core.options.declare import CheckedOptions, option

from .base import CORRECTIONS, LossInput
from .tokens import RatioLevel, Tensor, Tokens, bounded_exp


@dataclass(frozen=True)
class NoCorrection(CheckedOptions):
    """$w = 1$, no correction: assumes that the engine's probabilities equal the trainer's."""

    needs: ClassVar[frozenset[LossInput]] = frozenset()

    def __call__(self, tokens: Tokens) -> Tensor:
        """Return the weight of each token, (B, T), without a gradient; 0 drops the token; see ``Correction``."""
        return tokens.sampled.new_ones(tokens.sampled.shape)


@dataclass(frozen=True)
class Truncate(CheckedOptions):
    r"""$\min(\text{ratio}, \text{cap})$: truncated importance sampling (TIS; Ionides 2008).

    Its use for engines is described at https://fengyao.notion.site/off-policy-rl. The ratio is the trainer's
    probability divided by the engine's.

    Args:
        level: Whether a ratio belongs to a token, a turn or a sequence. Products over many tokens vary widely, so with
            ``sequence`` most long episodes have a ratio near 0 or above the cap.
        cap: Maximum weight.
    """

    level: RatioLevel = "token"
    cap: float = option(2.0, least=1)

    needs: ClassVar[frozenset[LossInput]] = frozenset({"old"})

    def __call__(self, tokens: Tokens) -> Tensor:
        """Return the weight of each token, (B, T), without a gradient; 0 drops the token; see ``Correction``."""
        return _product(tokens, self.level).clamp(max=self.cap)


@dataclass(frozen=True)
class Mask(CheckedOptions):
    r"""The ratio where $\text{low} \le \text{ratio} \le \text{high}$, else 0: IcePop (Ring-1T, arXiv 2510.18855).

    The ratio is the trainer's probability divided by the engine's.

    Args:
        level: Whether a ratio belongs to a token, a turn or a sequence.
        low: Lower bound of the ratio.
        high: Upper bound of the ratio.
    """

    level: RatioLevel = "token"
    low: float = option(0.5, least=0, most=1)
    high: float = option(5.0, least=1)

    needs: ClassVar[frozenset[LossInput]] = frozenset({"old"})

    def __call__(self, tokens: Tokens) -> Tensor:
        """Return the weight of each token, (B, T), without a gradient; 0 drops the token; see ``Correction``."""
        ratio = _product(tokens, self.level)
        return ratio.masked_fill((ratio < self.low) | (ratio > self.high), 0.0)


@dataclass(frozen=True)
class Geometric(CheckedOptions):
    r"""The geometric mean of the token ratios of a turn or a sequence, between narrow bounds.

    The mean is $\exp(\text{mean of the log-ratios})$, where a ratio is the trainer's probability divided by the
    engine's. Unlike a product, it needs no bounds that depend on the length. The default bounds are SkyRL's.

    Args:
        level: Whether the mean is over a turn or a sequence.
        low: Lower bound of the mean.
        high: Upper bound of the mean.
        mask: Drop a turn or sequence outside the bounds; otherwise its weight is the bound.
    """

    level: Literal["turn", "sequence"] = "sequence"
    low: float = option(0.99, least=0, most=1)
    high: float = option(1.01, least=1)
    mask: bool = True

    needs: ClassVar[frozenset[LossInput]] = frozenset({"old"})

    def __call__(self, tokens: Tokens) -> Tensor:
        """Return the weight of each token, (B, T), without a gradient; 0 drops the token; see ``Correction``."""
        mean = bounded_exp(tokens.pooled(tokens.log_mismatch, self.level, "mean"))
        if self.mask:
            return mean.masked_fill((mean < self.low) | (mean > self.high), 0.0)
        return mean.clamp(self.low, self.high)


def _product(tokens: Tokens, level: RatioLevel) -> Tensor:
    return bounded_exp(tokens.pooled(tokens.log_mismatch, level, "sum"))


CORRECTIONS.register("none", NoCorrection)
CORRECTIONS.register("truncate", Truncate)
CORRECTIONS.register("mask", Mask)
CORRECTIONS.register("geometric", Geometric)
