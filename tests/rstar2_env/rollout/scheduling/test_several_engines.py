"""Several engines behind one: places, prefixes, failures, and every way out."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from scripted_engine import EchoEnv, echo_player, scripted, turns_of

from rstar2_env.core.errors import ConfigurationError, UnknownNameError
from rstar2_env.rollout import (
    Budget,
    Engine,
    EpisodeEngine,
    EpisodeRequest,
    Generation,
    SamplingParams,
    Scheduler,
    Seat,
)

PARAMS = SamplingParams(max_tokens=4)


class FakeEngine:
    """Answers when it is told to; counts what is in flight; fails while it is ``broken``."""

    def __init__(self, capacity: int = 1000, delay_s: float | None = 0.0) -> None:
        self._capacity, self._delay_s = capacity, delay_s
        self.broken: Exception | None = None
        self.go = asyncio.Event()
        self.asked: list[list[int]] = []
        self.in_flight = self.most_in_flight = self.closed = 0
        self.versions: list[tuple[int, Any]] = []

    async def generate(self, ids: Sequence[int], params: SamplingParams) -> Generation:
        self.asked.append(list(ids))
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            if self._delay_s is None:
                await self.go.wait()
            else:
                await asyncio.sleep(self._delay_s)
            if self.broken is not None:
                raise self.broken
            return Generation([7] * params.max_tokens, [0.0] * params.max_tokens, "length", 0)
        finally:
            self.in_flight -= 1

    def update_weights(self, version: int, weights: Any = None) -> None:
        if self.broken is not None:
            raise self.broken
        self.versions.append((version, weights if weights is None else list(weights)))

    def capacity(self) -> int:
        return self._capacity

    def close(self) -> None:
        self.closed += 1


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(coroutine, 60))


async def play(scheduler: Scheduler, prompt: list[int], turns: int = 3, most: int = 40) -> list[int]:
    ids = list(prompt)
    async with scheduler.episode(len(prompt), most) as seat:
        for _ in range(turns):
            ids += (await seat.generate(ids, PARAMS)).ids
            ids += [1, 2]
    return ids


async def soon(condition: Any) -> None:
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it did not come to that")


def at_rest(scheduler: Scheduler) -> bool:
    stats = scheduler.stats()
    return stats.waiting == 0 and not any(stats.episodes) and not scheduler._places


def test_it_is_an_engine_and_knows_of_episodes() -> None:
    scheduler = Scheduler([FakeEngine(10), FakeEngine(30)])
    assert isinstance(scheduler, Engine)
    assert isinstance(scheduler, EpisodeEngine)
    assert scheduler.capacity() == 40
    assert run(scheduler.generate([1, 2], PARAMS)).ids == [7] * 4
    assert at_rest(scheduler)


@pytest.mark.parametrize("policy", ["kv_aware", "least_requests", "static"])
def test_every_turn_of_an_episode_goes_to_the_engine_that_holds_its_prefix(policy: str) -> None:
    engines = [FakeEngine() for _ in range(3)]
    scheduler = Scheduler(engines, policy)

    async def all_of_them() -> None:
        await asyncio.gather(*(play(scheduler, [100 + i]) for i in range(30)))

    run(all_of_them())
    homes = [{ids[0] for ids in engine.asked} for engine in engines]
    assert sum(map(len, homes)) == 30
    assert len(set.union(*homes)) == 30
    assert all(homes)
    assert at_rest(scheduler)


def test_episodes_wait_for_room_in_the_order_in_which_they_asked() -> None:
    # Without observations the most is reserved: (4 + 32 + 80) tokens an episode, so three at once.
    engine = FakeEngine(350, delay_s=0.001)
    scheduler = Scheduler([engine])

    async def all_of_them() -> None:
        tasks = [asyncio.create_task(play(scheduler, [i, 0, 0, 0], turns=1, most=80)) for i in range(12)]
        await asyncio.sleep(0)
        assert scheduler.stats().waiting == 9
        await asyncio.gather(*tasks)

    run(all_of_them())
    assert [ids[0] for ids in engine.asked] == list(range(12))
    assert at_rest(scheduler)


def test_without_a_limit_nobody_waits() -> None:
    engine = FakeEngine(50, delay_s=0.001)
    scheduler = Scheduler([engine], "least_requests")

    async def all_of_them() -> None:
        await asyncio.gather(*(play(scheduler, [i]) for i in range(12)))

    run(all_of_them())
    assert engine.most_in_flight == 12


@pytest.mark.parametrize("way", ["end", "exception", "cancelled playing", "cancelled waiting"])
def test_a_place_is_given_back_on_every_way_out(way: str) -> None:
    engine = FakeEngine(150, delay_s=None if "playing" in way else 0.0)
    scheduler = Scheduler([engine])

    async def leave() -> None:
        if way == "end":
            await play(scheduler, [1])
        elif way == "exception":
            with pytest.raises(ZeroDivisionError):
                async with scheduler.episode(1, 90):
                    raise ZeroDivisionError
        elif way == "cancelled playing":
            task = asyncio.create_task(play(scheduler, [1]))
            await soon(lambda: engine.in_flight)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert engine.in_flight == 0
        else:
            async with scheduler.episode(1, 90):
                task = asyncio.create_task(play(scheduler, [1], most=90))
                await soon(lambda: scheduler.stats().waiting)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                assert scheduler.stats().waiting == 0
        assert at_rest(scheduler)
        engine.go.set()
        await play(scheduler, [2], most=90)

    run(leave())
    assert at_rest(scheduler)


def test_one_that_gives_up_just_as_it_gets_its_place_gives_it_back() -> None:
    scheduler = Scheduler([FakeEngine(150)])

    async def race() -> None:
        async with scheduler.episode(1, 90):
            task = asyncio.create_task(play(scheduler, [1], most=90))
            await soon(lambda: scheduler.stats().waiting)
        # The place is granted by now, and the task has not run since.
        assert scheduler.stats().episodes == (1,)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(race())
    assert at_rest(scheduler)


def test_a_request_that_an_engine_fails_goes_to_another_and_a_failing_engine_is_left_out() -> None:
    engines = [FakeEngine() for _ in range(3)]
    engines[1].broken = ConnectionError("gone")
    scheduler = Scheduler(engines, "static", max_strikes=2)

    async def one_by_one() -> None:
        for i in range(12):
            assert len(await play(scheduler, [i])) == 19

    run(one_by_one())
    assert len(engines[1].asked) == 2
    assert scheduler.stats().left_out == (1,)
    assert scheduler.stats().moved == 2
    assert at_rest(scheduler)


def test_an_episode_moves_with_all_its_tokens_in_the_middle() -> None:
    engines = [FakeEngine(), FakeEngine()]
    scheduler = Scheduler(engines, "static")

    async def move() -> None:
        async with scheduler.episode(2, 40) as seat:
            await seat.generate([1, 2], PARAMS)
            engines[0].broken = ConnectionError("gone")
            await seat.generate([1, 2, 7, 7, 7, 7, 5], PARAMS)
            engines[0].broken = None
            await seat.generate([1, 2, 7, 7, 7, 7, 5, 7, 7, 7, 7, 6], PARAMS)

    run(move())
    assert [len(ids) for ids in engines[0].asked] == [2, 7]
    assert [len(ids) for ids in engines[1].asked] == [7, 12]
    assert at_rest(scheduler)


def test_a_request_that_fails_everywhere_fails_with_its_own_error_and_blames_no_engine() -> None:
    engines = [FakeEngine(), FakeEngine()]
    for engine in engines:
        engine.broken = ConnectionError("gone")
    scheduler = Scheduler(engines, max_strikes=1)

    async def fail() -> None:
        for _ in range(3):
            with pytest.raises(ConnectionError, match="gone"):
                await scheduler.generate([1], PARAMS)
        assert [len(engine.asked) for engine in engines] == [3, 3]
        for engine in engines:
            engine.broken = None
        await scheduler.generate([1], PARAMS)

    run(fail())
    assert scheduler.stats().left_out == ()
    assert at_rest(scheduler)


def test_a_request_that_an_engine_refuses_is_tried_nowhere_else() -> None:
    engines = [FakeEngine(), FakeEngine()]
    engines[0].broken = ConfigurationError("an empty prompt")
    scheduler = Scheduler(engines, "static")
    with pytest.raises(ConfigurationError, match="an empty prompt"):
        run(scheduler.generate([1], PARAMS))
    assert not engines[1].asked
    assert at_rest(scheduler)


def test_the_last_engine_is_never_left_out_and_those_left_out_get_another_chance() -> None:
    engines = [FakeEngine(), FakeEngine()]
    scheduler = Scheduler(engines, max_strikes=1)

    async def in_turn() -> None:
        engines[0].broken = ConnectionError("gone")
        await scheduler.generate([1], PARAMS)
        assert scheduler.stats().left_out == (0,)
        engines[0].broken, engines[1].broken = None, ConnectionError("gone as well")
        await scheduler.generate([1], PARAMS)
        assert scheduler.stats().left_out == (1,)

    run(in_turn())
    assert at_rest(scheduler)


def test_weights_go_to_every_engine_even_when_they_can_be_read_but_once() -> None:
    engines = [FakeEngine(), FakeEngine()]
    scheduler = Scheduler(engines)
    scheduler.update_weights(3, iter(["a", "b"]))
    assert [engine.versions for engine in engines] == [[(3, ["a", "b"])]] * 2


def test_an_engine_that_does_not_take_the_weights_plays_nothing_until_it_does() -> None:
    engines = [FakeEngine(), FakeEngine()]
    scheduler = Scheduler(engines)
    engines[0].broken = RuntimeError("no memory")
    scheduler.update_weights(1)
    engines[0].broken = None
    assert scheduler.stats().left_out == (0,)
    engines[1].broken = ConnectionError("gone")
    with pytest.raises(ConnectionError):
        run(scheduler.generate([1], PARAMS))
    assert not engines[0].asked, "it would have answered with the weights of before"
    engines[1].broken = None
    scheduler.update_weights(2)
    assert scheduler.stats().left_out == ()
    for engine in engines:
        engine.broken = RuntimeError("no memory")
    with pytest.raises(RuntimeError, match="no memory"):
        scheduler.update_weights(3)


def test_an_engine_that_cares_about_episodes_learns_of_them_through_the_scheduler() -> None:
    class Caring(FakeEngine):
        seats: list[tuple[int, int] | str] = []  # noqa: RUF012  # one engine only

        @asynccontextmanager
        async def episode(self, prompt_tokens: int, max_tokens: int) -> AsyncIterator[Seat]:
            self.seats.append((prompt_tokens, max_tokens))
            try:
                yield self
            finally:
                self.seats.append("out")

    run(play(Scheduler([Caring()]), [1, 2, 3]))
    assert Caring.seats == [(3, 40), "out"]


def test_episodes_of_several_event_loops_share_the_places() -> None:
    engine = FakeEngine(150, delay_s=0.002)
    scheduler = Scheduler([engine])
    results: list[int] = []

    def loop(number: int) -> None:
        async def some() -> None:
            found = await asyncio.gather(*(play(scheduler, [number], turns=1, most=80) for _ in range(8)))
            results.extend(len(ids) for ids in found)

        asyncio.run(some())

    threads = [threading.Thread(target=loop, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results == [7] * 32
    assert at_rest(scheduler)


def test_closing_closes_every_engine() -> None:
    class Sticky(FakeEngine):
        def close(self) -> None:
            super().close()
            raise OSError("it does not close")

    engines = [Sticky(), FakeEngine()]
    with pytest.raises(OSError, match="does not close"):
        Scheduler(engines).close()
    assert [engine.closed for engine in engines] == [1, 1]


def test_wrong_options_are_refused_by_name() -> None:
    with pytest.raises(ConfigurationError, match="at least one engine"):
        Scheduler([])
    with pytest.raises(ConfigurationError, match="margins"):
        Scheduler([FakeEngine()], margins=2)
    with pytest.raises(UnknownNameError, match="least_requests"):
        Scheduler([FakeEngine()], "least_request")


@pytest.mark.usefixtures("no_thread_left")
def test_the_player_plays_on_several_engines_as_on_one() -> None:
    engines = [scripted(lambda text: "stop" if turns_of(text) == 2 else "go", delay_s=0.001) for _ in range(2)]
    scheduler = Scheduler(engines)
    with echo_player(engines[0], EchoEnv, budget=Budget(tokens=200)) as player:
        player.engine = scheduler
        episodes = player.play([EpisodeRequest(seed=i) for i in range(20)])
    assert [episode.end for episode in episodes] == ["terminated"] * 20
    assert [episode.turns for episode in episodes] == [3] * 20
    assert sum(len(engine.calls) for engine in engines) == 60
    assert all(engine.calls for engine in engines)
    assert at_rest(scheduler)
