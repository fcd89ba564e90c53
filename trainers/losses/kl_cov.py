"""``kl_cov``: a KL penalty on the tokens that reduce the entropy most."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rstar2_env.core.options.declare import CheckedOptions, option

from ..ranks import Ranks
from .base import LOSSES, Figures, FloatArray, LossInput
from .batch_tokens import BatchTokens
from .covariance import covariances
from .tokens import Tensor, Tokens

_COLUMN = "kl_cov"


@dataclass(frozen=True)
class KlCov(CheckedOptions):
    r"""$\text{coef} \lvert\log \pi - \log \pi_\text{old}\rvert$ on the tokens with the highest covariance: KL-Cov.

    The entropy decreases with the covariance of $\log \pi$ and $A$ over the tokens of the optimizer batch, and a few
    tokens contribute most of the decrease. The penalty applies to a ``share`` of all tokens (at least one): those with
    the largest product $(\log \pi - \text{mean}) (A - \text{mean})$. The paper (arXiv 2505.22617) adds the penalty to
    an unclipped surrogate, ``ppo_clip:low=none,high=none``. The penalty is 0 in the first update on a rollout. verl's
    configuration sets ``coef`` to 0.1, SkyRL's sets ``share`` to 0.2.

    Args:
        share: Share of all tokens to penalize.
        coef: Weight in the loss.
    """

    share: float = option(2e-4, least=0, most=1)
    coef: float = option(1.0, least=0)

    needs: ClassVar[frozenset[LossInput]] = frozenset({"old"})
    policy_gradient: ClassVar[bool] = False

    def prepare(self, batch: BatchTokens, ranks: Ranks, rng: np.random.Generator) -> Mapping[str, FloatArray]:
        """Return columns that are computed from the whole optimizer batch, (tokens,) each; see ``Prepares``."""
        covariance, count = covariances(batch, ranks)
        held = max(1, int(self.share * count))
        keys = batch.keys()
        own = np.argsort(-covariance, kind="stable")[:held]
        told = ranks.gather((covariance[own], keys[own]))
        values, every = (np.concatenate([one[at] for one in told]) for at in (0, 1))
        # Ties go to the first token, on any number of processes.
        order = np.lexsort((*every.T[::-1], -values))
        return {_COLUMN: batch.marked(every[order[:held]])}

    def __call__(self, tokens: Tokens) -> Tensor:
        """Return the loss of each token, (B, T); see ``Term``."""
        return self.coef * tokens.column(_COLUMN) * tokens.log_ratio.abs()

    def figures(self, tokens: Tokens) -> Figures:
        """Return the mean of |log pi - log pi_old| over the penalized tokens."""
        held = tokens.mask & (tokens.column(_COLUMN) > 0)
        return {"kl_cov/distance": tokens.sum_and_count(tokens.log_ratio.detach().abs(), held)}


LOSSES.register("kl_cov", KlCov)
