"""``loads_of``: how full the caches of an engine are, one entry for each machine or process that has one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, runtime_checkable

from rstar2_env.rollout.engine import Engine, EngineStats, KeepsCaches
from rstar2_env.rollout.scheduling.scheduler import Scheduler

Loads = Callable[[], Awaitable[list[EngineStats]]]
"""Asks for the present loads; those that do not answer are left out."""


@runtime_checkable
class ReportsLoads(Protocol):
    """An engine that stands for several, each with a cache of its own."""

    async def loads(self) -> list[EngineStats]:
        """The load of each that answers."""
        ...


def loads_of(engine: Engine) -> Loads | None:
    """What asks an engine for its loads; ``None`` where it cannot tell how much of its cache is needed.

    An engine that keeps what nobody needs at the moment counts it as used, so it cannot tell.

    Args:
        engine: The engine, or a scheduler over several.
    """
    if isinstance(engine, Scheduler):
        asked = [loads_of(one) for one in engine.engines]
        known = [ask for ask in asked if ask is not None]

        async def all_of_them() -> list[EngineStats]:
            return [load for ask in known for load in await ask()]

        return all_of_them if len(known) == len(asked) else None
    if isinstance(engine, ReportsLoads):
        return engine.loads
    stats: Any = getattr(engine, "stats", None)
    if stats is None or isinstance(engine, KeepsCaches):
        return None

    async def its_own() -> list[EngineStats]:
        return [stats()]

    return its_own
