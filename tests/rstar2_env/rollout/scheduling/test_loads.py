"""Which engines can tell how full their caches are, and that of several each tells for itself."""

from __future__ import annotations

import asyncio

import pytest
from flaky_server import Answer, Asked, flaky

from rstar2_env.rollout import EngineStats, Scheduler, VllmServerEngine
from rstar2_env.rollout.scheduling.loads import loads_of

pytest.importorskip("httpx", reason="servers need the extra 'remote'")


class Plain:
    """An engine that tells its load, if it has one."""

    def __init__(self, usage: float | None = None, capacity: int = 1000) -> None:
        self._capacity = capacity
        if usage is not None:
            self.stats = lambda: EngineStats(kv_usage=usage)

    def capacity(self) -> int:
        return self._capacity


class Keeps(Plain):
    def forget(self) -> None: ...


def usages(engine: object) -> list[float]:
    ask = loads_of(engine)  # type: ignore[arg-type]
    assert ask is not None
    return [load.kv_usage for load in asyncio.run(ask())]  # type: ignore[arg-type]


def test_an_engine_tells_its_own_and_a_scheduler_those_of_its_engines() -> None:
    assert usages(Plain(0.25)) == [0.25]
    assert usages(Scheduler([Plain(0.25), Plain(0.5)], "static")) == [0.25, 0.5]  # type: ignore[list-item]


def test_an_engine_that_keeps_what_nobody_needs_cannot_tell() -> None:
    assert loads_of(Keeps(0.5)) is None  # type: ignore[arg-type]
    assert loads_of(Plain()) is None  # type: ignore[arg-type]
    assert loads_of(Scheduler([Plain(0.5), Keeps(0.5)], "static")) is None  # type: ignore[list-item]


def test_processes_that_share_engines_give_away_their_part_each() -> None:
    """Without that, the prompts of two processes would fill the same cache twice."""
    engines = [Plain(0.0, capacity=1000)]
    alone, shared = Scheduler(engines), Scheduler(engines, shared_by=4)  # type: ignore[arg-type]
    assert alone.capacity() == shared.capacity() == 1000

    def admitted(scheduler: Scheduler) -> int:
        async def enter_all() -> int:
            places = [scheduler.episode(100, 100) for _ in range(12)]
            tasks = [asyncio.create_task(place.__aenter__()) for place in places]
            await asyncio.sleep(0.01)
            count = sum(task.done() for task in tasks)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            return count

        return asyncio.run(enter_all())

    assert admitted(alone) == 4  # of 232 tokens each, with the block that each may waste
    assert admitted(shared) == 1


def test_of_several_servers_each_that_is_there_tells_its_own() -> None:
    def server(usage: float, dead: list[bool]) -> object:
        def answer(asked: Asked, number: int) -> Answer:
            if dead[0]:
                return None
            if asked.path == "/v1/models":
                return 200, {"data": [{"id": "m", "max_model_len": 512}]}
            if asked.path == "/metrics":
                return 200, f"vllm:kv_cache_usage_perc 0.{usage}\nvllm:num_preemptions_total {usage}.0\n"
            body = asked.body
            if asked.path == "/v1/completions":
                return 200, {"choices": [{"logprobs": {"top_logprobs": [{"a": -1.0}]}} for _ in body["prompt"]]}
            return 404, {}

        return answer

    dead = [False]
    with (
        flaky(server(5, [False])) as first,  # type: ignore[arg-type]
        flaky(server(7, dead)) as second,  # type: ignore[arg-type]
    ):
        engine = VllmServerEngine([first.address, second.address], retries=0, start_timeout_s=0)
        try:
            ask = loads_of(engine)
            assert ask is not None
            found = asyncio.run(ask())  # type: ignore[arg-type]
            assert [(load.kv_usage, load.preemptions) for load in found] == [(0.5, 5), (0.7, 7)]
            dead[0] = True
            assert [load.kv_usage for load in asyncio.run(ask())] == [0.5]  # type: ignore[arg-type]
        finally:
            engine.close()
