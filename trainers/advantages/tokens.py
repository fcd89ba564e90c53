"""Convert advantages of turns or of whole episodes to advantages of tokens."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rstar2_env.core.episode import Episode
from rstar2_env.rewards.scoring import TURN_RETURNS

from ..ranks import Ranks
from ..selectors.base import EQUAL
from .base import Advantages, FloatArray


def on_tokens(value: float | FloatArray, episode: Episode) -> FloatArray:
    """Return an advantage as a new array with one number per token, shape (completion tokens,)."""
    return np.full(len(episode.completion_ids), value, dtype=np.float64)


def on_turns(values: Sequence[float] | FloatArray, episode: Episode) -> FloatArray:
    """Return an array, (completion tokens,), with each turn's value at the turn's tokens, and 0 at all other tokens."""
    found = np.zeros(len(episode.completion_ids))
    for turn, value in zip(episode.steps, values, strict=True):
        found[turn.start : turn.stop] = value
    return found


def turn_rewards(episode: Episode) -> FloatArray:
    """Return the rewards of the turns, shape (turns,); they add up to the reward of the episode.

    The component ``return`` of the trainer's reward is split among the turns in proportion to the environment's
    rewards. With ``return:weight=0.5``, a turn gets half of the environment's reward for it; without the component
    ``return``, a turn gets 0. All other components are computed at the end of an episode and are therefore added to the
    last turn.
    """
    own = [turn.reward for turn in episode.steps]
    earned = np.array(episode.measured.get(TURN_RETURNS, own), dtype=np.float64)
    rest = episode.reward - earned.sum()
    if len(earned) and abs(rest) > EQUAL * max(abs(episode.reward), np.abs(earned).max()):
        earned[-1] += rest
    return earned


def normalized(groups: Sequence[Sequence[Episode]], values: Advantages, ranks: Ranks, eps: float) -> Advantages:
    """Normalize advantages by mean and standard deviation (n - 1) over all policy tokens of all processes.

    Args:
        groups: The episodes, by group.
        values: The advantages; a single number counts once per policy token.
        ranks: The processes.
        eps: Added to the deviation.

    Returns:
        The normalized advantages; zeros if all are equal up to rounding.
    """
    pairs = [
        weighed(value, episode)
        for group, own in zip(groups, values, strict=True)
        for episode, value in zip(group, own, strict=True)
    ]
    total, count = ranks.sum(np.array([sum(v @ w for v, w in pairs), sum(w.sum() for _, w in pairs)], dtype=np.float64))
    mean = float(total / max(count, 1.0))
    (squares,) = ranks.sum(np.array([sum(np.square(v - mean) @ w for v, w in pairs)], dtype=np.float64))
    spread = math.sqrt(squares / max(count - 1, 1.0))
    return [[scaled(value, mean, spread, eps) for value in own] for own in values]


def weighed(value: float | FloatArray, episode: Episode) -> tuple[FloatArray, FloatArray]:
    """Return an advantage's values, and for how many policy tokens each stands: all for a single number, else one."""
    if np.ndim(value):
        own = np.asarray(value)[np.asarray(episode.mask, dtype=bool)]
        return own, np.ones(len(own))
    return np.array([value], dtype=np.float64), np.array([episode.policy_tokens], dtype=np.float64)


def scaled(value: float | FloatArray, mean: float, spread: float, eps: float) -> float | FloatArray:
    """Return (value - mean) / (spread + eps); zeros if the spread (a deviation) is only rounding error."""
    if spread <= EQUAL * abs(mean):
        return value * 0.0
    return (value - mean) / (spread + eps)
