"""``optimal_token_baseline``: a baseline for each token position, weighted by the uncertainty of the tokens so far."""

# This module is longer than most parts because a group with rows of different lengths needs a baseline per position.

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError

from .base import ADVANTAGES, AdvantageNeed, FloatArray, GroupAdvantage, centred, measured, rewards, without_rounding


@dataclass(frozen=True)
class OptimalTokenBaseline(GroupAdvantage):
    r"""$R - B_t$: the reward minus the minimum-variance baseline at each token position (OTB, arXiv 2602.07078).

    $B_t$ is the mean reward of the group's episodes that have a token at position $t$, weighted by
    $W_t = \sum_{k \le t} (1 - 2 \pi_k + S_k)$. Here $S_k$ is the sum of $p^2$ over the vocabulary, so
    $1 - 2 \pi_k + S_k$ is the squared norm of the gradient of $\log \pi_k$ with respect to the logits. Episodes with
    many uncertain tokens so far therefore count more. $S_k$ needs an extra forward pass over the selected episodes;
    $\pi_k$ is the engine's probability of the token. Use it for long episodes and small groups, where a mean over the
    group leaves much variance. A group with equal rewards has zero advantages.

    The paper's $B_t$ includes the episode's own reward, with a weight that depends on the episode's tokens; this biases
    the gradient. With ``baseline="others"``, $B_t$ is the mean over the other episodes that have a token at position
    $t$, and 0 if there are none; the gradient is unbiased. Groups with equal rewards then have nonzero advantages at
    the last positions.

    Args:
        count: The tokens that $t$ counts: the ``"policy"``'s tokens (verl's ``tir_optimal_token_baseline``, for
            episodes with tools), or ``"all"`` tokens of the completion (verl's ``optimal_token_baseline``). Without
            tools, the two counts are equal.
        zero_tail: Whether the baseline is 0 at positions that only the longest episode reaches, as in verl, so that the
            advantage is the reward there; otherwise the baseline is the reward and the advantage is 0.
        baseline: Episodes whose mean is subtracted: ``"all"`` episodes of the group, as in the paper, or ``"others"``,
            the episodes of the group other than this one. ``"others"`` requires ``zero_tail``.
    """

    needs: ClassVar[frozenset[AdvantageNeed]] = frozenset({"sum_squares"})
    count: Literal["policy", "all"] = "policy"
    zero_tail: bool = True
    baseline: Literal["all", "others"] = "all"

    def __post_init__(self) -> None:
        """Check the options.

        Raises:
            ConfigurationError: ``baseline="others"`` without ``zero_tail``.
        """
        super().__post_init__()
        if self.baseline == "others" and not self.zero_tail:
            raise ConfigurationError(
                "The options baseline=others and zero_tail=false exclude each other: at positions that no other "
                "episode reaches, baseline=others subtracts 0. Remove one of them.",
                option="zero_tail",
            )

    def estimate(self, group: Sequence[Episode]) -> Sequence[float | FloatArray]:
        """Return the advantage of each episode of a group; see ``GroupAdvantage``."""
        returns = rewards(group)
        if self.baseline == "all" and not centred(returns).any():
            return [0.0] * len(group)
        places = [self._places(episode) for episode in group]
        width = max(len(episode.completion_ids) for episode in group)
        # One row per episode, one column per position; 0 if the episode has no policy token there.
        weights, there = np.zeros((len(group), width)), np.zeros((len(group), width), dtype=bool)
        for row, (episode, own) in enumerate(zip(group, places, strict=True)):
            weights[row, own] = np.cumsum(_uncertainty(episode))
            there[row, own] = True
        ends = [int(own[-1]) + 1 if len(own) else 0 for own in places]
        baselines = self._baselines(returns, weights, there, ends)
        return [
            _spread(episode, without_rounding(value - baseline[own], returns))
            for episode, value, baseline, own in zip(group, returns, baselines, places, strict=True)
        ]

    def _baselines(
        self, returns: FloatArray, weights: FloatArray, there: np.ndarray, ends: Sequence[int]
    ) -> list[FloatArray]:
        """Return the baseline of each episode at each position.

        Args:
            returns: Reward of each episode, shape (episodes,).
            weights: Weight of each reward in the baseline, shape (episodes, positions).
            there: Whether an episode has a token at a position, shape (episodes, positions).
            ends: For each episode, the number of positions up to its last token.
        """
        if self.baseline == "others":
            return [
                _mean(*(np.delete(one, own, 0) for one in (returns, weights, there))) for own in range(len(returns))
            ]
        found = _mean(returns, weights, there)
        if self.zero_tail:
            found[sorted(ends)[-2] :] = 0.0
        return [found] * len(returns)

    def _places(self, episode: Episode) -> np.ndarray:
        """Return the position t of each policy token, as ``count`` defines it, ascending."""
        chosen = np.flatnonzero(episode.mask)
        return chosen if self.count == "all" else np.arange(len(chosen))


def _uncertainty(episode: Episode) -> FloatArray:
    """Return 1 - 2 pi + sum of p^2 at each policy token, at least 0.

    Without this bound, the result could be negative: pi is the engine's probability, and the sum is the trainer's.
    """
    chosen = np.asarray(episode.mask, dtype=bool)
    probability = np.exp(np.asarray(episode.logprobs, dtype=np.float64)[chosen])
    found: FloatArray = np.maximum(1 - 2 * probability + measured(episode, "sum_squares")[chosen], 0.0)
    return found


def _mean(returns: FloatArray, weights: FloatArray, there: np.ndarray) -> FloatArray:
    """Return the weighted mean reward at each position, (positions,); 0 at positions without a token.

    If the uncertainty of all tokens so far is 0, the result is the unweighted mean over the episodes that have a token
    there.
    """
    total = weights.sum(0)
    plain: FloatArray = (returns @ there) / np.maximum(there.sum(0), 1)
    np.divide(weights.T @ returns, total, out=plain, where=total > 0)
    return plain


def _spread(episode: Episode, values: FloatArray) -> FloatArray:
    found = np.zeros(len(episode.completion_ids))
    found[np.asarray(episode.mask, dtype=bool)] = values
    return found


ADVANTAGES.register("optimal_token_baseline", OptimalTokenBaseline)
