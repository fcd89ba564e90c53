"""What a player who knows everything would do: for tests, sample episodes, ``rstar2 validate``, the agent ``oracle``.

An environment of several turns gives its own reference player as ``oracle_turn()``. Whoever plays the episode hands it
to an agent that asks for it (``needs_reference``); no agent takes it from the environment. Beside it may stand
``random_turn(rng)``, the player of the random baseline.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np

Reference: TypeAlias = Callable[[], str]
"""Gives the next turn of the reference player, whatever was played so far."""
Guesser: TypeAlias = Callable[[np.random.Generator], str]
"""Gives the next turn of a player who knows the form of an answer, and nothing of the problem."""


def reference_of(env: gym.Env[Any, Any]) -> Reference | None:
    """The environment's own reference player, or ``None`` where the gold answer is all there is to know."""
    own: Reference | None = getattr(env.unwrapped, "oracle_turn", None)
    return own if callable(own) else None


def guesser_of(env: gym.Env[Any, Any]) -> Guesser | None:
    """The environment's own random player, ``random_turn(rng)``, or ``None``; of a mixture that of the source."""
    own: Guesser | None = getattr(playing(env), "random_turn", None)
    return own if callable(own) else None


def playing(env: gym.Env[Any, Any]) -> Any:
    """The environment that plays the running episode, without wrappers: of a mixture that of the episode's source."""
    own: Any = env.unwrapped
    inner = getattr(own, "playing", None)
    return own if inner is None else playing(inner)
