"""Metrics of the engine-trainer mismatch and of the correction's weights: overall, and by number of tool calls.

All metrics are sums and counts that add up over micro-batches, steps and processes; ``summary`` converts them to means.
"""

from __future__ import annotations

from collections.abc import Mapping

from .base import Figures
from .tokens import LARGEST_LOG, Tensor, Tokens

DEPTHS = ("depth_0", "depth_1", "depth_2", "depth_3_or_more")
"""Ranges of the number of tool calls before a token, as used in metric names."""
_WEIGHT, _SQUARE = "weight", "weight_squared"


def mismatch(tokens: Tokens, weights: Tensor) -> Figures:
    """Return the metrics of a micro-batch: ``mismatch/NAME``, and by number of tool calls ``mismatch/NAME/depth_1``.

    ``depth_1`` covers the tokens after one tool call, and ``depth_3_or_more`` those after three or more.

    mu is the engine's probability of a token and pi the trainer's. ``logp_difference`` is the mean of abs(log pi - log
    mu), ``kl`` an estimate of KL(mu, pi) by k3, and ``chi2`` an estimate of the chi-squared divergence. ``masked`` is
    the share of tokens with weight 0, ``weight`` the mean weight, and ``weight_squared`` the mean squared weight, from
    which the effective sample size is computed.

    Args:
        tokens: The micro-batch.
        weights: The correction's weights for these tokens, (B, T).
    """
    log_ratio = tokens.log_mismatch.clamp(-LARGEST_LOG, LARGEST_LOG)
    ratio = log_ratio.exp()
    values = {
        "logp_difference": log_ratio.abs(),
        "kl": ratio - 1 - log_ratio,
        "chi2": ratio.square() - 1,
        "masked": (weights == 0).to(ratio.dtype),
        _WEIGHT: weights,
        _SQUARE: weights.square(),
    }
    depth = tokens.depth.clamp(max=len(DEPTHS) - 1)
    where = {"": tokens.mask} | {f"/{name}": tokens.mask & (depth == at) for at, name in enumerate(DEPTHS)}
    return {
        f"mismatch/{name}{suffix}": tokens.sum_and_count(value, chosen)
        for suffix, chosen in where.items()
        for name, value in values.items()
    }


def summary(figures: Mapping[str, tuple[float, float]]) -> dict[str, float]:
    """Convert sums to means, and add ``mismatch/ess``: the weights' effective sample size as a share of the tokens.

    Metrics without observations are omitted.
    """
    means = {name: total / count for name, (total, count) in figures.items() if count}
    prefix = f"mismatch/{_SQUARE}"
    for name in [name for name in means if name.startswith(prefix)]:
        suffix, square = name.removeprefix(prefix), means.pop(name)
        weight = means[f"mismatch/{_WEIGHT}{suffix}"]
        means[f"mismatch/ess{suffix}"] = weight * weight / square if square else 0.0
    return means
