"""Finds reference players, which know the solution; used by tests, sample episodes, validation, the agent ``oracle``.

A multi-turn environment provides its own reference player as the method ``oracle_turn()``. The code that plays the
episode passes this method to an agent with ``needs_reference``; an agent never takes the method from the environment.
An environment may also provide ``random_turn(rng)``, the player of the random baseline.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np

Reference: TypeAlias = Callable[[], str]
"""Function that returns the next turn of the reference player, in any state of the episode."""
Guesser: TypeAlias = Callable[[np.random.Generator], str]
"""Function that returns the next turn of a player that knows the format of an answer but not the problem."""


def reference_of(env: gym.Env[Any, Any]) -> Reference | None:
    """Return the environment's own reference player; ``None`` if it has none, so the caller plays the gold answer."""
    own: Reference | None = getattr(env.unwrapped, "oracle_turn", None)
    return own if callable(own) else None


def guesser_of(env: gym.Env[Any, Any]) -> Guesser | None:
    """Return the method ``random_turn`` of the running environment (see ``playing``); ``None`` if it has none."""
    own: Guesser | None = getattr(playing(env), "random_turn", None)
    return own if callable(own) else None


def playing(env: gym.Env[Any, Any]) -> Any:
    """Return the unwrapped environment of the running episode; for a mixture, the drawn environment."""
    own: Any = env.unwrapped
    inner = getattr(own, "playing", None)
    return own if inner is None else playing(inner)
