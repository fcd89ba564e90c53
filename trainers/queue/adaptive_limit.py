"""``Adaptive``: sets the number of concurrent episodes of a run from the load of the engines' KV caches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.rollout.engine import Engine
from rstar2_env.rollout.scheduling.adaptive_in_flight import InFlight
from rstar2_env.rollout.scheduling.loads import Loads, loads_of

from .desk import Desk

EVERY_S = 1.0
"""Seconds between two readings of the engines' loads."""


class Adaptive:
    """``LimitSource`` that computes the number of concurrent episodes from the load of the engines.

    Args:
        loads: Function that reads the loads of the engines.
        in_flight: Computes the number of concurrent episodes. It keeps its state for the whole run, but checkpoints do
            not contain it.
        every_s: Seconds between two readings.
    """

    def __init__(self, loads: Loads, in_flight: InFlight, *, every_s: float = EVERY_S) -> None:
        self._loads, self._every_s = loads, every_s
        self.in_flight = in_flight

    async def __call__(self, desk: Desk) -> AsyncIterator[int]:
        """Yield the initial number of concurrent episodes, then the number after each reading of the engines' loads."""
        self.in_flight.begin()
        yield self.in_flight.number
        while True:
            await asyncio.sleep(self._every_s)
            yield self.in_flight.look(await self._loads(), playing=desk.playing, ended=desk.ended)


def adaptive(engine: Engine, name: str, *, longest: int, most: int, processes: int) -> Adaptive:
    """Return the adaptive limit on concurrent episodes of an engine, for all processes of a run.

    Args:
        engine: The engine; with several processes, it must be the client of servers that all processes use.
        name: Name of the engine, for error messages.
        longest: Number of tokens of the longest possible episode.
        most: Maximum number of episodes in one process.
        processes: Number of processes.

    Raises:
        ConfigurationError: The engine does not report the load of its KV cache.
    """
    loads = loads_of(engine)
    if loads is None:
        raise ConfigurationError(
            f"engine={name!r} does not report how much of its cache is in use, which is needed to adapt "
            "the number of episodes: use a vLLM engine, or play a fixed number of episodes at the same "
            "time",
            option="rollout.adaptive_in_flight",
        )
    first = max(processes, engine.capacity() // longest)
    return Adaptive(loads, InFlight(first, most * processes, least=processes))
