"""``optimal_token_baseline``: a baseline for each token position, weighted by the uncertainty of the tokens so far."""

# This module is longer than most parts because a group with rows of different lengths needs a baseline per position.

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from rstar2_env.core.episode import Episode

from .base import ADVANTAGES, AdvantageNeed, FloatArray, GroupAdvantage, centred, measured, rewards


@dataclass(frozen=True)
class OptimalTokenBaseline(GroupAdvantage):
    """R - B_t: the reward minus the minimum-variance baseline at each token position (OTB, arXiv 2602.07078).

    B_t is the mean reward of the group's episodes that have a t-th token, weighted by W_t = sum over the tokens up to t
    of 1 - 2 pi + sum over the vocabulary of p^2: the squared norm of the gradient of log pi with respect to the logits.
    Episodes with many uncertain tokens so far therefore count more. The sums of p^2 need an extra forward pass over the
    selected episodes; pi is the engine's probability of the token. Use it for long episodes and small groups, where a
    mean over the group leaves much variance. A group with equal rewards has zero advantages.

    Args:
        count: The tokens that t counts: the ``"policy"``'s tokens (verl's ``tir_optimal_token_baseline``, for episodes
            with tools), or ``"all"`` tokens of the completion (verl's ``optimal_token_baseline``). Without tools both
            are equal.
        zero_tail: Baseline at positions that only the longest episode reaches. If true, as in verl, the baseline is 0
            and the advantage is the reward; otherwise the baseline is the reward and the advantage is 0.
    """

    needs: ClassVar[frozenset[AdvantageNeed]] = frozenset({"sum_squares"})
    count: Literal["policy", "all"] = "policy"
    zero_tail: bool = True

    def estimate(self, group: Sequence[Episode]) -> Sequence[float | FloatArray]:
        """Return the advantage of each episode of a group; see ``GroupAdvantage``."""
        returns = rewards(group)
        if not centred(returns).any():
            return [0.0] * len(group)
        places = [self._places(episode) for episode in group]
        width = max(len(episode.completion_ids) for episode in group)
        # One row per episode, one column per position; 0 if the episode has no policy token there.
        weights, there = np.zeros((len(group), width)), np.zeros((len(group), width), dtype=bool)
        for row, (episode, own) in enumerate(zip(group, places, strict=True)):
            weights[row, own] = np.cumsum(_uncertainty(episode))
            there[row, own] = True
        total = weights.sum(0)
        baseline = np.divide(weights.T @ returns, total, out=_plain_mean(returns, there), where=total > 0)
        if self.zero_tail:
            longest = [int(own[-1]) + 1 if len(own) else 0 for own in places]
            baseline[sorted(longest)[-2] :] = 0.0
        return [
            _spread(episode, value - baseline[own]) for episode, value, own in zip(group, returns, places, strict=True)
        ]

    def _places(self, episode: Episode) -> np.ndarray:
        """Return the position of each policy token, ascending."""
        chosen = np.flatnonzero(episode.mask)
        return chosen if self.count == "all" else np.arange(len(chosen))


def _uncertainty(episode: Episode) -> FloatArray:
    """Return 1 - 2 pi + sum of p^2 at each policy token, at least 0 even if engine and trainer differ."""
    chosen = np.asarray(episode.mask, dtype=bool)
    probability = np.exp(np.asarray(episode.logprobs, dtype=np.float64)[chosen])
    found: FloatArray = np.maximum(1 - 2 * probability + measured(episode, "sum_squares")[chosen], 0.0)
    return found


def _plain_mean(returns: FloatArray, there: np.ndarray) -> FloatArray:
    """Return the unweighted mean reward at each position, over the episodes that have a token there.

    It replaces the weighted mean if the uncertainty of all tokens so far is 0.
    """
    mean: FloatArray = (returns @ there) / np.maximum(there.sum(0), 1)
    return mean


def _spread(episode: Episode, values: FloatArray) -> FloatArray:
    found = np.zeros(len(episode.completion_ids))
    found[np.asarray(episode.mask, dtype=bool)] = values
    return found


ADVANTAGES.register("optimal_token_baseline", OptimalTokenBaseline)
