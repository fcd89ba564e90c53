"""Sources of an episode's turns (``engine.Seat``): given turns, and turns from two versions of the weights."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack

import numpy as np

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.manner import Manner
from rstar2_env.rollout.chat import ChatCodec
from rstar2_env.rollout.engine import Engine, Generation, SamplingParams, Seat, check_candidates, open_episode

_SPAWN_KEY = 7
"""Makes the random draws of ``TwoPolicies`` independent of the policy's draws, although both use the same seed."""

_NO_STALE = (
    "A component of this run samples some turns from older weights, but no second engine holds older weights: "
    "give the player the option stale_engine."
)


class GivenTurns:
    """Source of turns that are given as text, not generated; their log-probabilities are 0.

    Args:
        turns: The turns as text.
        chat: Converts the turns to token ids.
    """

    def __init__(self, turns: Sequence[str], chat: ChatCodec) -> None:
        self._turns, self._chat, self._next = list(turns), chat, 0

    async def generate(self, ids: Sequence[int], params: SamplingParams) -> Generation:
        """Return the next given turn as token ids.

        Raises:
            ConfigurationError: No turn is left, or the next turn exceeds the token budget.
        """
        if self._next == len(self._turns):
            raise ConfigurationError(
                f"The {len(self._turns)} given turns do not end the episode in this environment. Give the "
                "turns of a whole episode, with the answer in the form that the environment expects."
            )
        own = self._chat.turn(self._turns[self._next])
        if len(own) > params.max_tokens:
            raise ConfigurationError(
                f"Turn {self._next + 1} of the given episode has {len(own)} tokens, "
                f"but only {params.max_tokens} tokens of the budget are left: raise max_turn_tokens or "
                "max_episode_tokens, or leave this episode out."
            )
        self._next += 1
        return Generation(own, [0.0] * len(own), "stop", 0)


class TwoPolicies:
    """Source of turns that draws, for each turn, whether the newest or older weights generate it.

    Args:
        newest: The seat on the engine with the newest weights.
        stale: The engine with older weights.
        share: Probability that the older weights generate a turn.
        seed: Seed of these draws; ``None`` for unseeded draws.
        room: Number of tokens of the prompt, and maximum number of tokens that may follow, for ``open_episode``.

    Attributes:
        was_stale: Whether the older weights generated the last turn.
    """

    def __init__(
        self, newest: Seat, stale: Engine | None, share: float, seed: int | None, room: tuple[int, int]
    ) -> None:
        if stale is None:
            raise ConfigurationError(_NO_STALE)
        self._newest, self._engine, self._share, self._room = newest, stale, share, room
        entropy = None if seed is None else np.random.SeedSequence(seed, spawn_key=(0, _SPAWN_KEY))
        self._rng = np.random.default_rng(entropy)
        self._stale: Seat | None = None
        self._stack = AsyncExitStack()
        self.was_stale = False

    async def generate(self, ids: Sequence[int], params: SamplingParams) -> Generation:
        """Generate the next turn with the newest or the older weights, chosen at random."""
        self.was_stale = bool(self._rng.random() < self._share)
        if not self.was_stale:
            return await self._newest.generate(ids, params)
        if self._stale is None:
            self._stale = await self._stack.enter_async_context(open_episode(self._engine, *self._room))
        return await self._stale.generate(ids, params)

    async def leave(self) -> None:
        """Release the seat on the engine with older weights, if it was used."""
        await self._stack.aclose()


def check_engines(manner: Manner, newest: Engine, stale: Engine | None) -> None:
    """Check that the engines can play episodes as ``manner`` states.

    Args:
        manner: How the episodes are played.
        newest: The engine with the newest weights.
        stale: The engine with older weights; ``None`` without one.

    Raises:
        ConfigurationError: An engine cannot report as many candidates per token as the manner needs, or the manner
            needs older weights and no engine holds them.
    """
    if manner.stale and stale is None:
        raise ConfigurationError(_NO_STALE)
    for engine in (newest, stale):
        if engine is not None:
            check_candidates(engine, manner.candidates)
