"""``clip_cov``: the clipped surrogate loss without some of the tokens that reduce the entropy."""

# This module is longer than most parts because the tokens are chosen from the whole batch before the loss is
# computed.

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import CheckedOptions, option

from ..ranks import Ranks
from .base import LOSSES, Figures, FloatArray, LossInput
from .batch_tokens import BatchTokens
from .covariance import covariances
from .ppo_clip import PpoClip
from .tokens import LARGEST_LOG, Tensor, Tokens

_COLUMN = "clip_cov"


@dataclass(frozen=True)
class ClipCov(CheckedOptions):
    r"""``ppo_clip`` on all tokens except a random choice of tokens with a high covariance: Clip-Cov (arXiv 2505.22617).

    The entropy decreases with the covariance of $\log \pi$ and $A$ over the tokens of the optimizer batch, and a few
    tokens contribute most of the decrease. Candidates are the tokens whose own product
    $(\log \pi - \text{mean}) (A - \text{mean})$ is between ``least`` and ``most``. A random selection of the candidates
    is excluded from training; its size is ``share`` of all tokens, at least one. Tokens that the surrogate clips are
    never selected. Excluding the selection prevents entropy collapse in long runs. The selection is the same on any
    number of processes.

    Args:
        share: Share of all tokens to exclude.
        least: Minimum covariance of an excluded token.
        most: Maximum covariance of an excluded token.
        low: See ``ppo_clip``.
        high: See ``ppo_clip``; the paper uses 0.2.
    """

    share: float = option(2e-4, least=0, most=1)
    least: float = 1.0
    most: float = 5.0
    low: float | None = option(0.2, least=0, most=1)
    high: float | None = option(0.2, least=0)

    needs: ClassVar[frozenset[LossInput]] = frozenset({"old"})
    policy_gradient: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check every option.

        Raises:
            ConfigurationError: An option is out of its range.
        """
        super().__post_init__()
        if self.least >= self.most:
            raise ConfigurationError(
                f"The option `least` of clip_cov must be less than `most`; got least={self.least} and most={self.most}."
            )

    def prepare(self, batch: BatchTokens, ranks: Ranks, rng: np.random.Generator) -> Mapping[str, FloatArray]:
        """Return columns that are computed from the whole optimizer batch, (tokens,) each; see ``Prepares``."""
        covariance, count = covariances(batch, ranks)
        ratio = np.exp(np.minimum(batch.logp - batch.old, LARGEST_LOG))
        least, most = self._surrogate.bounds
        clipped = ((ratio > most) & (batch.advantage > 0)) | ((ratio < least) & (batch.advantage < 0))
        may = (covariance > self.least) & (covariance < self.most) & ~clipped
        keys = batch.keys()
        every = np.concatenate(ranks.gather(keys[may]))
        every = every[np.lexsort(every.T[::-1])]
        drawn = rng.choice(len(every), min(len(every), max(1, int(self.share * count))), replace=False)
        return {_COLUMN: batch.marked(every[drawn])}

    def __call__(self, tokens: Tokens) -> Tensor:
        """Return the loss of each token, (B, T); see ``Term``."""
        return self._surrogate(tokens) * (1 - tokens.column(_COLUMN))

    def figures(self, tokens: Tokens) -> Figures:
        """Return the metrics of ``ppo_clip``, and the share of the policy's tokens that are excluded."""
        return self._surrogate.figures(tokens) | {"clip/dropped": tokens.sum_and_count(tokens.column(_COLUMN))}

    @property
    def _surrogate(self) -> PpoClip:
        return PpoClip(self.low, self.high)


LOSSES.register("clip_cov", ClipCov)
