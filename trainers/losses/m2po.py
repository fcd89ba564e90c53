"""``m2po``: a trust region over the whole batch, defined by the second moment of the log-ratios."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rstar2_env.core.options.declare import CheckedOptions, option

from ..ranks import Ranks
from .base import LOSSES, Anchored, Figures, FloatArray
from .batch_tokens import BatchTokens
from .tokens import RatioAnchor, Tensor, Tokens, bounded_exp

_COLUMN = "m2po"


@dataclass(frozen=True)
class M2po(Anchored, CheckedOptions):
    r"""$-\text{ratio} \, A$, without the tokens with the largest log-ratios: M2PO (arXiv 2510.01161).

    The tokens of the optimizer batch with the largest $(\log \text{ratio})^2$ are excluded one by one (tokens of equal
    value together), until the mean of $(\log \text{ratio})^2$ over the other tokens is below ``threshold``. Only
    outliers are excluded, and none while the batch is close to the policy; clipping would drop many informative tokens.
    Use the term for rows that are many updates old. The denominator of the ratio is the sampling probability, so the
    separate correction for engine-trainer mismatch is not applied. AReaL counts all tokens, as in the paper's formula;
    the authors' code only counts tokens that clipping could act on (``of=harmful``).

    Args:
        threshold: Upper bound of the mean of $(\log \text{ratio})^2$.
        of: ``"all"`` tokens, or ``"harmful"`` tokens: $A > 0$ with a ratio above 1, or $A < 0$ with a ratio below 1.
        anchor: Denominator of the ratio.
    """

    threshold: float = option(0.04, above=0)
    of: Literal["all", "harmful"] = "all"
    anchor: RatioAnchor = "sampled"

    def prepare(self, batch: BatchTokens, ranks: Ranks, rng: np.random.Generator) -> Mapping[str, FloatArray]:
        """Return columns that are computed from the whole optimizer batch, (tokens,) each; see ``Prepares``."""
        log_ratio = batch.logp - (batch.old if self.anchor == "old" else batch.sampled)
        counted = np.ones(len(log_ratio), dtype=bool) if self.of == "all" else log_ratio * batch.advantage > 0
        squares = log_ratio**2
        # The largest value is dropped only while the mean, and therefore the largest value, is not below the threshold.
        large = counted & (squares >= self.threshold)
        told = ranks.sum(np.array([squares[counted & ~large].sum(), np.count_nonzero(counted & ~large)]))
        candidates = np.sort(np.concatenate(ranks.gather(squares[large])))
        means = (told[0] + np.cumsum(candidates)) / (told[1] + np.arange(1, len(candidates) + 1))
        dropped = candidates[means >= self.threshold]
        least = dropped[0] if len(dropped) else np.inf
        return {_COLUMN: (counted & (squares >= least)).astype(float)}

    def __call__(self, tokens: Tokens) -> Tensor:
        """Return the loss of each token, (B, T); see ``Term``."""
        return -bounded_exp(tokens.log_ratio_to(self.anchor)) * tokens.advantage * (1 - tokens.column(_COLUMN))

    def figures(self, tokens: Tokens) -> Figures:
        """Return the share of the policy's tokens that are excluded."""
        return {"clip/dropped": tokens.sum_and_count(tokens.column(_COLUMN))}


LOSSES.register("m2po", M2po)
