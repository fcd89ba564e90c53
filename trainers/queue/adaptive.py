"""``Adaptive``: the limit of the queue, found from how full the engines' caches are; one for all processes of a run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.rollout.engine import Engine
from rstar2_env.rollout.scheduling.in_flight import InFlight
from rstar2_env.rollout.scheduling.loads import Loads, loads_of

from .desk import Desk

EVERY_S = 1.0
"""Seconds between two looks at the engines."""


class Adaptive:
    """Says how many episodes may play at the same time; see ``Limits``.

    Args:
        loads: Asks the engines for their loads.
        in_flight: Finds the number. It goes on from round to round, and begins anew with a run that is resumed.
        every_s: Seconds between two looks.
    """

    def __init__(self, loads: Loads, in_flight: InFlight, *, every_s: float = EVERY_S) -> None:
        self._loads, self._every_s = loads, every_s
        self.in_flight = in_flight

    async def __call__(self, desk: Desk) -> AsyncIterator[int]:
        """The number, again and again."""
        self.in_flight.begin()
        yield self.in_flight.number
        while True:
            await asyncio.sleep(self._every_s)
            yield self.in_flight.look(await self._loads(), playing=desk.playing, ended=desk.ended)


def adaptive(engine: Engine, name: str, *, longest: int, most: int, processes: int) -> Adaptive:
    """The limit of the episodes that an engine plays for all processes of a run.

    Args:
        engine: Plays them; with several processes, servers that all of them ask.
        name: Its name, for the message.
        longest: Tokens of the longest episode.
        most: Largest number of episodes in one process.
        processes: Number of processes.

    Raises:
        ConfigurationError: The engine cannot tell how full its cache is.
    """
    loads = loads_of(engine)
    if loads is None:
        raise ConfigurationError(
            f"engine={name!r} cannot tell how much of its cache is needed: use a vLLM engine, or let a fixed number of "
            "episodes play",
            option="rollout.adaptive_in_flight",
        )
    first = max(processes, engine.capacity() // longest)
    return Adaptive(loads, InFlight(first, most * processes, least=processes))
