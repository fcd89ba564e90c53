"""A round of several processes: episodes are played where there is room, and come back whole to who asked for them."""

from __future__ import annotations

import asyncio
import threading
from contextlib import closing

import pytest
from small_run import SmallPlayer, advantages, collector

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import BranchError
from rstar2_env.testing.training.processes import in_each, in_processes
from rstar2_env.trainers.queue.requests import PlayRequest
from rstar2_env.trainers.queue.shared import AbandonedRoundError, SilentProcessError, make_queue


class Waits(SmallPlayer):
    """Plays nothing to its end before every one of some players has begun to play."""

    others: list[SmallPlayer]

    async def episode(self, **arguments):
        episode = await super().episode(**arguments)
        async with asyncio.timeout(60):
            while not all(player.played for player in self.others):
                await asyncio.sleep(0.005)
        return episode


class Counted(SmallPlayer):
    """Counts over several players how many play at once."""

    now = most = 0
    lock = threading.Lock()

    async def episode(self, **arguments):
        with self.lock:
            Counted.now += 1
            Counted.most = max(Counted.most, Counted.now)
        try:
            return await super().episode(**arguments)
        finally:
            with self.lock:
                Counted.now -= 1


@pytest.fixture(autouse=True)
def nobody_plays():
    Counted.now = Counted.most = 0


def job(number, **options):
    return PlayRequest(group=number, seed=number, sampling_seed=number, **options)


def played(ranks, player, counts, limits=None, *, groups=None):
    """Each process asks for some episodes; returns what it got."""

    async def work(queue):
        own = (queue.play(job(100 * ranks.rank + number)) for number in range(counts[ranks.rank]))
        return await asyncio.gather(*own)

    with closing(make_queue(player, ranks, limits)) as queue:
        return asyncio.run(queue.run(work, groups=groups))


def test_episodes_that_wait_are_played_by_who_has_room_and_come_back_in_order():
    players = [Waits(max_in_flight=2) for _ in range(3)]
    for player in players:
        player.others = players
    found = in_processes(3, lambda ranks: played(ranks, players[ranks.rank], [24, 0, 3]))
    assert [[one.group for one in own] for own in found] == [list(range(24)), [], [200, 201, 202]]
    assert all(isinstance(one, Episode) and one.end == "answered" for own in found for one in own)
    assert sum(len(player.played) for player in players) == 27
    assert all(player.most_in_flight <= 2 for player in players)
    assert all(player.played for player in players), "who asked for nothing plays too"
    again = in_processes(1, lambda ranks: played(ranks, SmallPlayer(), [24]))[0]
    assert [one.completion_ids for one in found[0]] == [one.completion_ids for one in again]


def test_while_everybody_has_room_nothing_moves():
    players = [SmallPlayer(delay_s=lambda rng: 0.05) for _ in range(2)]
    in_processes(2, lambda ranks: played(ranks, players[ranks.rank], [10, 10]))
    assert [{group // 100 for group, *_ in player.played} for player in players] == [{0}, {1}]


@pytest.mark.parametrize("size", [1, 3])
def test_one_limit_holds_however_many_processes_ask(size):
    async def limits(desk):
        yield 4
        while desk.ended < 12:
            await asyncio.sleep(0.001)
        yield 2

    players = [Counted(delay_s=lambda rng: 0.01) for _ in range(size)]
    counts = [24 // size] * size
    found = in_processes(size, lambda ranks: played(ranks, players[ranks.rank], counts, limits))
    assert [len(own) for own in found] == counts
    assert Counted.most == 4


def test_a_limit_that_cannot_be_found_ends_the_round():
    async def limits(desk):
        yield 1
        raise OSError("no answer")

    errors = in_each(2, lambda ranks: played(ranks, SmallPlayer(delay_s=lambda rng: 1000.0), [3, 3], limits))
    assert [type(error) for error in errors] == [OSError, AbandonedRoundError]
    assert "no answer" in str(errors[1])


def test_an_episode_that_is_cancelled_is_stopped_wherever_it_plays():
    """It also gives its room back."""
    players = [SmallPlayer(delay_s=lambda rng: 1000.0, max_in_flight=1) for _ in range(2)]

    def work(ranks):
        async def ask(queue):
            if ranks.rank:
                return None
            asked = [asyncio.create_task(queue.play(job(number))) for number in range(4)]
            while sum(player.in_flight for player in players) < 2:
                await asyncio.sleep(0.005)
            for task in asked[:3]:
                task.cancel()
            await asyncio.gather(*asked[:3], return_exceptions=True)
            while [group for player in players for group, *_ in player.played].count(3) < 1:
                await asyncio.sleep(0.005)
            asked[3].cancel()
            return [task.cancelled() for task in asked[:3]]

        with closing(make_queue(players[ranks.rank], ranks)) as queue:
            return asyncio.run(queue.run(ask))

    assert in_processes(2, work)[0] == [True] * 3
    assert [player.in_flight for player in players] == [0, 0]
    assert sorted(group for player in players for group, *_ in player.played) == [0, 1, 3]


def test_a_branch_that_fails_elsewhere_raises_where_it_was_asked_for():
    class NoBranches(SmallPlayer):
        async def branch(self, parent, token, *, options, sampling_seed):
            raise BranchError(f"no branch at {token}")

    def work(ranks):
        async def ask(queue):
            if ranks.rank:
                return None
            parent = await queue.play(job(0))
            return await asyncio.gather(
                *(queue.play(job(0, parent=parent, token=token)) for token in range(6)), return_exceptions=True
            )

        player = NoBranches(max_in_flight=1)
        with closing(make_queue(player, ranks)) as queue:
            return asyncio.run(queue.run(ask))

    found = in_processes(2, work)[0]
    assert [(type(error), str(error)) for error in found] == [
        (BranchError, f"no branch at {token}") for token in range(6)
    ]


def failing(ranks, fail):
    async def ask(queue):
        if ranks.rank == 1:
            await fail()
        return await queue.play(job(0))

    player = SmallPlayer(delay_s=lambda rng: 1000.0)
    queue = make_queue(player, ranks)
    try:
        return asyncio.run(queue.run(ask))
    finally:
        assert player.in_flight == 0
        queue.close()


def test_nobody_waits_for_a_process_that_fails():
    async def fail():
        raise OSError("no device")

    errors = in_each(3, lambda ranks: failing(ranks, fail))
    assert [type(error) for error in errors] == [AbandonedRoundError, OSError, AbandonedRoundError]
    assert all("OSError: no device" in str(error) for error in errors[::2])


def test_nobody_waits_for_a_process_that_is_gone():
    class KilledError(BaseException):
        pass

    async def vanish():
        raise KilledError

    errors = in_each(3, lambda ranks: failing(ranks, vanish))
    assert [type(error) for error in errors] == [AbandonedRoundError, KilledError, AbandonedRoundError]
    assert "process 1 has ended" in str(errors[0])


@pytest.mark.parametrize("lent", [False, True])
def test_nobody_waits_for_ever_for_a_process_that_says_nothing(lent):
    """One that is stopped, say: its connection stands. It may hold an episode of another."""
    stopped = threading.Event()

    class Stops(SmallPlayer):
        async def episode(self, **arguments):
            stopped.wait(60)
            return await super().episode(**arguments)

    def work(ranks):
        async def ask(queue):
            count = (4 if lent else 0) if ranks.rank == 0 else (0 if lent else 1)
            return await asyncio.gather(*(queue.play(job(number)) for number in range(count)))

        player = Stops(max_in_flight=1) if ranks.rank else SmallPlayer(max_in_flight=1, delay_s=lambda rng: 0.05)
        queue = make_queue(player, ranks, timeout_s=0.5)
        try:
            return asyncio.run(queue.run(ask))
        finally:
            stopped.set()
            queue.close()

    first, _ = in_each(2, work)
    assert isinstance(first, SilentProcessError)
    assert "Process 0 has waited for 0.5 s" in str(first)
    assert "run.process_timeout_s" in str(first)


def test_the_groups_of_a_collector_are_whole_wherever_their_episodes_were_played():
    """With room for one each, the process whose episodes are short plays those of the other."""
    players = []

    def work(ranks):
        player = SmallPlayer(max_in_flight=1, delay_s=lambda rng: 0.002)
        players.append(player)
        collect = collector(player, ranks=ranks, group_size=8)
        with closing(collect):
            return [collect.collect(step) for step in range(2)]

    def rows(batches):
        return [(row.episode.group, row.completion_ids) for batch in batches for row in batch.rows]

    def draws(ranks):
        collect = collector(SmallPlayer(), ranks=ranks, group_size=8)
        with closing(collect):
            return [collect.collect(step) for step in range(2)]

    one = in_processes(1, draws)[0]
    players.clear()
    first, second = in_processes(2, work)
    for step in range(2):
        assert rows([first[step], second[step]]) == rows([one[step]])
        assert advantages(first[step]) + advantages(second[step]) == advantages(one[step])
    assert all(player.most_in_flight == 1 for player in players)
    assert sum(len(player.played) for player in players) == 2 * 4 * 8


def test_without_one_queue_every_process_plays_its_own():
    players = [SmallPlayer(max_in_flight=1), SmallPlayer(max_in_flight=1)]

    def work(ranks):
        collect = collector(players[ranks.rank], ranks=ranks, one_queue=False)
        with closing(collect):
            collect.collect(0)
        return {group for group, *_ in players[ranks.rank].played}

    assert in_processes(2, work) == [{0, 1}, {2, 3}]
