"""``Spent``: where the time of episodes goes: in their environments (tools, graders) and waiting for the engine.

The times of episodes that are played together are added up; divided by their number they are those of one episode.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rstar2_env.rollout.engine import Generation, SamplingParams, Seat


@dataclass(slots=True)
class Spent:
    """Seconds of wall-clock time, added up over episodes.

    Attributes:
        episodes: How many episodes were begun.
        environment: Seconds in calls of their environments.
        engine: Seconds until the engine had written their turns, its queue included.
    """

    episodes: int = 0
    environment: float = 0.0
    engine: float = 0.0

    @contextmanager
    def in_environment(self) -> Iterator[None]:
        """Add the time that the block takes."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.environment += time.perf_counter() - begun

    def timed(self, seat: Seat) -> Seat:
        """A seat whose time is added."""
        return _TimedSeat(seat, self)


@dataclass(slots=True)
class _TimedSeat:
    seat: Seat
    spent: Spent

    async def generate(self, ids: Sequence[int], params: SamplingParams) -> Generation:
        """See ``Seat``."""
        begun = time.perf_counter()
        try:
            return await self.seat.generate(ids, params)
        finally:
            self.spent.engine += time.perf_counter() - begun
