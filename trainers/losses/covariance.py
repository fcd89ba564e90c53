"""Covariances of tokens, from which ``clip_cov`` and ``kl_cov`` select the tokens that reduce the entropy."""

from __future__ import annotations

import numpy as np

from ..ranks import Ranks
from .base import FloatArray
from .batch_tokens import BatchTokens


def covariances(batch: BatchTokens, ranks: Ranks) -> tuple[FloatArray, int]:
    """Return (log pi - mean) (A - mean) of each token, (tokens,); the means are over all tokens of all processes.

    The mean of these products is the covariance that determines the entropy decrease of a softmax policy (arXiv
    2505.22617).

    Args:
        batch: The policy's tokens of this process.
        ranks: The processes.

    Returns:
        The products, and the number of tokens on all processes.
    """
    sums = ranks.sum(np.array([len(batch.logp), batch.logp.sum(), batch.advantage.sum()]))
    count, logp, advantage = sums / np.array([1, *[max(sums[0], 1)] * 2])
    return (batch.logp - logp) * (batch.advantage - advantage), int(count)
