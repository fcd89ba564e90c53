"""``TwoPolicies``: a seat whose turns come from the newest weights or from older ones, by a draw for each turn."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack

import numpy as np

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.manner import Manner
from rstar2_env.rollout.engine import Engine, Generation, SamplingParams, Seat, check_candidates, open_episode

_DRAWS = 7
"""Sets these draws apart from those of the policy, which come from the same seed."""


class TwoPolicies:
    """The place of one episode on two engines; the second is taken when it is first needed.

    Args:
        newest: The seat on the engine with the newest weights.
        stale: The engine with older ones.
        share: Probability of a turn to be drawn from older weights.
        seed: Seeds these draws; ``None`` makes them differ every time.
        room: Arguments of ``open_episode``: tokens of the prompt, and the most that may follow.

    Attributes:
        was_stale: Whether the last turn was drawn from older weights.
    """

    def __init__(
        self, newest: Seat, stale: Engine | None, share: float, seed: int | None, room: tuple[int, int]
    ) -> None:
        if stale is None:
            raise ConfigurationError(_NO_STALE)
        self._newest, self._engine, self._share, self._room = newest, stale, share, room
        self._rng = np.random.default_rng(None if seed is None else np.random.SeedSequence(seed, spawn_key=(0, _DRAWS)))
        self._stale: Seat | None = None
        self._stack = AsyncExitStack()
        self.was_stale = False

    async def generate(self, ids: Sequence[int], params: SamplingParams) -> Generation:
        """See ``Seat``."""
        self.was_stale = bool(self._rng.random() < self._share)
        if not self.was_stale:
            return await self._newest.generate(ids, params)
        if self._stale is None:
            self._stale = await self._stack.enter_async_context(open_episode(self._engine, *self._room))
        return await self._stale.generate(ids, params)

    async def leave(self) -> None:
        """Free the place on the second engine."""
        await self._stack.aclose()


_NO_STALE = (
    "A part of this run draws turns from older weights, and there is no second engine that holds them: give the player "
    "a stale_engine."
)


def check_engines(manner: Manner, newest: Engine, stale: Engine | None) -> None:
    """Check that engines can play episodes in a manner.

    Args:
        manner: How they are to be played.
        newest: The engine with the newest weights.
        stale: The one with older weights.

    Raises:
        ConfigurationError: One reports no candidates, or there is none with older weights.
    """
    if manner.stale and stale is None:
        raise ConfigurationError(_NO_STALE)
    for engine in (newest, stale):
        if engine is not None:
            check_candidates(engine, manner.candidates)
