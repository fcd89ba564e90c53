"""Functions that score each turn of an episode: named functions of this package, or the user's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from rstar2_env.core.episode import Episode
from rstar2_env.core.options.registry import Registry
from rstar2_env.core.options.user_code import Shape, is_called_with

StepScores: TypeAlias = Callable[[Episode], Sequence[float]]
"""Function that returns one number per turn of the policy."""

STEP_SCORES: Registry[StepScores] = Registry(
    "step score",
    "rstar2_env.rewards",
    "rstar2_env.step_scores",
    shape=Shape(is_called_with(1), "a function of (episode) that returns a number for each turn"),
)


def statuses(episode: Episode) -> list[float]:
    """Return, for each turn, the share of its calls whose status is not an error; 1 for a turn without a call."""
    found = []
    for turn in episode.steps:
        counted = [status for status in turn.statuses if status.counts]
        found.append(1 - sum(status.is_error for status in counted) / len(counted) if counted else 1.0)
    return found


def turn_rewards(episode: Episode) -> list[float]:
    """Return the environment's reward of each turn."""
    return [turn.reward for turn in episode.steps]


STEP_SCORES.register("statuses", statuses)
STEP_SCORES.register("turn_rewards", turn_rewards)
