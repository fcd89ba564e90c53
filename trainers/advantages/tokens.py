"""Advantages of tokens: one number for each token of an episode, from those of its turns or of the whole episode."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rstar2_env.core.episode import Episode

from ..ranks import Ranks
from ..selectors.base import EQUAL
from .base import Advantages, FloatArray


def on_tokens(value: float | FloatArray, episode: Episode) -> FloatArray:
    """An advantage as an array of its own, one number for each token, shape (completion tokens,)."""
    return np.full(len(episode.completion_ids), value, dtype=np.float64)


def on_turns(values: Sequence[float] | FloatArray, episode: Episode) -> FloatArray:
    """One number for each turn, on the tokens of the turn; 0 on the environment's, shape (completion tokens,)."""
    found = np.zeros(len(episode.completion_ids))
    for turn, value in zip(episode.steps, values, strict=True):
        found[turn.start : turn.stop] = value
    return found


def turn_rewards(episode: Episode) -> FloatArray:
    """What each turn earned, shape (turns,); it adds up to the reward of the episode.

    What the components of a trainer's reward add to the environment's own is paid at the end of an episode, so it
    belongs to the last turn.
    """
    earned = np.array([turn.reward for turn in episode.steps], dtype=np.float64)
    rest = episode.reward - earned.sum()
    if len(earned) and abs(rest) > EQUAL * max(abs(episode.reward), np.abs(earned).max()):
        earned[-1] += rest
    return earned


def normalized(groups: Sequence[Sequence[Episode]], values: Advantages, ranks: Ranks, eps: float) -> Advantages:
    """Advantages less their mean, over their standard deviation over n - 1, of all policy tokens of all processes.

    Args:
        groups: The episodes.
        values: Their advantages; a number counts once for each token that the policy wrote.
        ranks: The processes.
        eps: Added to the deviation.

    Returns:
        The same as it was given, normalized; zeros where all are equal but for rounding.
    """
    pairs = [
        weighed(value, episode)
        for group, own in zip(groups, values, strict=True)
        for episode, value in zip(group, own, strict=True)
    ]
    total, count = ranks.sum(np.array([sum(v @ w for v, w in pairs), sum(w.sum() for _, w in pairs)], dtype=np.float64))
    mean = float(total / max(count, 1.0))
    (squares,) = ranks.sum(np.array([sum(np.square(v - mean) @ w for v, w in pairs)], dtype=np.float64))
    spread = math.sqrt(squares / (count - 1)) if count > 1 else 0.0
    return [[scaled(value, mean, spread, eps) for value in own] for own in values]


def weighed(value: float | FloatArray, episode: Episode) -> tuple[FloatArray, FloatArray]:
    """The different numbers in an advantage, and how many of the policy's tokens have each."""
    if np.ndim(value):
        own = np.asarray(value)[np.asarray(episode.mask, dtype=bool)]
        return own, np.ones(len(own))
    return np.array([value], dtype=np.float64), np.array([episode.policy_tokens], dtype=np.float64)


def scaled(value: float | FloatArray, mean: float, spread: float, eps: float) -> float | FloatArray:
    """An advantage less the mean, over the deviation; zeros where the deviation is rounding alone."""
    if spread <= EQUAL * abs(mean):
        return value * 0.0
    return (value - mean) / (spread + eps)
