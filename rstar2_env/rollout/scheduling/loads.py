"""``loads_of``: reads how full each cache of an engine is; an engine with several servers has several caches."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, runtime_checkable

from rstar2_env.rollout.engine import Engine, EngineStats, KeepsCaches
from rstar2_env.rollout.scheduling.several_engines import Scheduler

Loads = Callable[[], Awaitable[list[EngineStats]]]
"""Function that returns the current load of each cache of an engine; servers that do not answer are left out."""


@runtime_checkable
class ReportsLoads(Protocol):
    """An engine that consists of several servers, each with its own cache, and reports the load of each."""

    async def loads(self) -> list[EngineStats]:
        """Request the load of each server; return the loads of the servers that answer."""
        ...


def loads_of(engine: Engine) -> Loads | None:
    """Return a function that returns an engine's loads; ``None`` if the engine cannot report how full its cache is.

    An engine that keeps caches while it is idle counts them as used, so ``None`` is returned for it.

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
