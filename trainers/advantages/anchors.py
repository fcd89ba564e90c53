"""Anchors: functions that decide whether two turns of a group start in the same state, for estimators such as GiGPO."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from rstar2_env.core.episode import Episode
from rstar2_env.core.options.registry import Registry
from rstar2_env.core.options.user_code import Shape, is_called_with

Anchor: TypeAlias = Callable[[Episode, int], str]
"""Maps an episode and a turn number to a text: turns with the same text have the same state."""

ANCHORS: Registry[Anchor] = Registry(
    "anchor",
    entry_points="rstar2_env.anchors",
    shape=Shape(is_called_with(2), "a function of (episode, turn) that returns a text"),
    named_alone=True,
)


def observation(episode: Episode, turn: int) -> str:
    """Return the last observation before ``turn`` (from 0); in many games, it shows the whole state."""
    return episode.steps[turn].observation


def history(episode: Episode, turn: int) -> str:
    """Return all observations before ``turn`` (from 0), concatenated, without the policy's own text."""
    return "\0".join(step.observation for step in episode.steps[: turn + 1])


ANCHORS.register("observation", observation)
ANCHORS.register("history", history)
