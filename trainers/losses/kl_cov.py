"""``kl_cov``: hold the tokens that drive the entropy down close to what they were."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from rstar2_env.core.options.declare import CheckedOptions, option

from .base import LOSSES, Figures, FloatArray, Need
from .batch_tokens import BatchTokens
from .covariance import covariances
from .tokens import Tokens

if TYPE_CHECKING:
    from torch import Tensor

    from ..ranks import Ranks

_COLUMN = "kl_cov"


@dataclass(frozen=True)
class KlCov(CheckedOptions):
    """coef |log pi - log pi_old| on the tokens of the highest covariance: KL-Cov (arXiv 2505.22617).

    The entropy falls with the covariance of log pi and A over the tokens of the optimizer batch, to which a few tokens
    give most: the ``share`` of all tokens (at least one) with the largest product (log pi - mean)(A - mean) is held.
    The paper adds it to a surrogate that is not clipped, ``ppo_clip:low=none,high=none``. It acts from the second
    update on a rollout on. verl has a ``coef`` of 0.1 in its configuration, SkyRL a ``share`` of 0.2.

    Args:
        share: Tokens that are held, as a share of all.
        coef: Its weight in the loss.
    """

    share: float = option(2e-4, least=0, most=1)
    coef: float = option(1.0, least=0)

    needs: ClassVar[frozenset[Need]] = frozenset({"old"})
    policy_gradient: ClassVar[bool] = False

    def prepare(self, batch: BatchTokens, ranks: Ranks, rng: np.random.Generator) -> Mapping[str, FloatArray]:
        """See ``Prepares``."""
        covariance, count = covariances(batch, ranks)
        held = max(1, int(self.share * count))
        keys = batch.keys()
        own = np.argsort(-covariance, kind="stable")[:held]
        told = ranks.gather((covariance[own], keys[own]))
        values, every = (np.concatenate([one[at] for one in told]) for at in (0, 1))
        # Of equal ones the first, on any number of processes.
        order = np.lexsort((*every.T[::-1], -values))
        return {_COLUMN: batch.marked(every[order[:held]])}

    def __call__(self, tokens: Tokens) -> Tensor:
        """See ``Term``."""
        return self.coef * tokens.column(_COLUMN) * tokens.log_ratio.abs()

    def figures(self, tokens: Tokens) -> Figures:
        """The mean distance of the tokens that are held."""
        held = tokens.mask & (tokens.column(_COLUMN) > 0)
        distance = tokens.log_ratio.detach().abs().masked_fill(~held, 0.0)
        return {"kl_cov/distance": (distance.sum(), held.sum())}


LOSSES.register("kl_cov", KlCov)
