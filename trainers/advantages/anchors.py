"""Anchors: what makes two turns of a group the same state, for estimators that compare turns."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from rstar2_env.core.episode import Episode
from rstar2_env.core.options.own_code import Shape, is_called_with
from rstar2_env.core.options.registry import Registry

Anchor: TypeAlias = Callable[[Episode, int], str]
"""Of an episode and the number of one of its turns, a text: turns with the same text are in the same state."""

ANCHORS: Registry[Anchor] = Registry(
    "anchor",
    entry_points="rstar2_env.anchors",
    shape=Shape(is_called_with(2), "a function of (episode, turn) that returns a text"),
)


def observation(episode: Episode, turn: int) -> str:
    """What the policy saw last before the turn: the whole state where an observation shows it, as in many games."""
    return episode.steps[turn].observation


def history(episode: Episode, turn: int) -> str:
    """All that the policy was shown so far, without its own words: the same results of the same number of calls."""
    return "\0".join(step.observation for step in episode.steps[: turn + 1])


ANCHORS.register("observation", observation)
ANCHORS.register("history", history)
