"""Collecting ahead: how old a turn may be, what begins when, what a checkpoint keeps, how it stops and fails."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
import pytest
from small_run import SmallPlayer, coin, collector

from rstar2_env.core.blocking import StoppedError
from rstar2_env.core.turn import Turn
from rstar2_env.testing.training.processes import in_each, in_processes
from rstar2_env.trainers.ranks import OtherProcessError
from rstar2_env.trainers.step.prefetch import Prefetch, PrefetchPace


@dataclass
class TwoTurns(SmallPlayer):
    """Episodes of two turns with some time between them, which say the version of the weights at that time."""

    version: int = -1
    begun: threading.Event = field(default_factory=threading.Event)

    async def episode(self, **words):
        first = self.version
        self.begun.set()
        episode = await super().episode(**words)
        episode.steps = [Turn(version=first), Turn(version=self.version)]
        return episode


class Run:
    """A trainer whose steps do nothing but take time."""

    def __init__(self, pace, *, player=None, train_s=lambda step: 0.0, on_group=None, steps=None, **options):
        self.player = player or TwoTurns()
        self.collector = collector(self.player, **options)
        self.step, self.handed, self.train_s = 0, [], train_s
        self.steps = steps or (lambda step: pace.every)
        self.pace = pace
        self.ahead = Prefetch(
            self.collector,
            lambda settings: (settings, self.collector.collect(self.collector.counts["steps"])),
            pace,
            hand_over=self.hand_over,
            settings=lambda: self.step,
        )

    def hand_over(self):
        self.player.version = self.step
        self.handed.append(self.step)

    def take(self):
        settings, batch = self.ahead.take(self.step)
        time.sleep(self.train_s(self.step))
        self.step += self.steps(self.step)
        return settings, batch

    def play(self):
        """The settings and the versions of the turns of every batch, by the step at which it trains."""
        found = {}
        try:
            while self.step < self.pace.last:
                at = self.step
                settings, batch = self.take()
                turns = [turn.version for group in batch.groups for episode in group for turn in episode.steps]
                found[at] = (settings, turns, batch)
        finally:
            self.ahead.stop()
        return found


def wait_for(what):
    until = time.monotonic() + 60
    while not what():
        assert time.monotonic() < until
        time.sleep(0.005)


def slow(seed):
    """Delays that differ, of episodes as of steps."""
    rng = np.random.default_rng(seed)
    return {
        "player": TwoTurns(delay_s=lambda draws: float(rng.random() * 0.01)),
        "train_s": lambda step: float(rng.random() * 0.02),
    }


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    ("staleness", "every", "last", "handed", "drawn"),
    [
        (1, 1, 5, [0, 1, 2, 3], [0, 0, 1, 2, 3]),
        (2, 1, 7, [0, 2, 4], [0, 0, 0, 2, 2, 4, 4]),
        (3, 1, 6, [0, 3], [0, 0, 0, 0, 3, 3]),
        (1, 2, 8, [0, 2, 4], [0, 0, 2, 4]),
        (2, 3, 12, [0, 6], [0, 0, 0, 6]),
    ],
)
def test_drained_batches_come_from_weights_that_depend_on_the_step_alone(staleness, every, last, handed, drawn, seed):
    run = Run(PrefetchPace(staleness, every, last), **slow(seed))
    found = run.play()
    assert run.handed == handed
    assert list(found) == list(range(0, last, every))
    for version, (step, (settings, turns, _)) in zip(drawn, found.items(), strict=True):
        assert set(turns) == {version}
        assert settings == version, "limits and temperature are those of the hand-over"
        assert step - version <= staleness * every


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("staleness", "every"), [(2, 1), (3, 1), (2, 2)])
def test_carried_episodes_are_never_older_than_allowed(staleness, every, seed):
    last = 12 * every
    run = Run(PrefetchPace(staleness, every, last, carry=True), **slow(seed))
    found = run.play()
    assert run.handed == list(range(0, last, every)), "before every batch"
    for step, (settings, turns, _) in found.items():
        assert step - min(turns) <= staleness * every
        assert settings == max(0, step - staleness * every)


@pytest.mark.parametrize("carry", [False, True])
@pytest.mark.parametrize("staleness", [1, 2, 3])
def test_batches_that_train_in_fewer_steps_than_expected_are_followed_by_more(staleness, carry):
    taken = [1, 4, 2, 1, 1, 3, 4, 1]
    run = Run(PrefetchPace(staleness, 4, 14, carry=carry), steps=lambda step: taken[len(run.handed_at)], **slow(0))
    run.handed_at = []
    syncs = {}
    while run.step < 14:
        at = run.step
        settings, batch = run.take()
        run.handed_at.append(at)
        syncs[at] = min(turn.version for group in batch.groups for episode in group for turn in episode.steps)
        assert settings == syncs[at] or carry
    run.ahead.stop()
    starts = run.handed_at
    assert starts == [0, 1, 5, 7, 8, 9, 12]
    for number, start in enumerate(starts):
        assert syncs[start] >= starts[max(0, number - staleness)], "no turn is older than that many batches"


def test_an_episode_that_is_carried_over_a_hand_over_goes_on_with_the_new_weights():
    class Waits(TwoTurns):
        """Episodes of the third batch wait, in their middle, for weights that come only while they run."""

        async def episode(self, **words):
            episode = await super().episode(**words)
            if len(self.played) > 2 * 16:
                while self.version < 1:
                    await asyncio.sleep(0.001)
                episode.steps[1].version = self.version
            return episode

    run = Run(PrefetchPace(2, 1, 3, carry=True), player=Waits())
    run.take()
    wait_for(lambda: len(run.player.played) == 3 * 16)
    run.take()
    _, batch = run.take()
    run.ahead.stop()
    for episode in chain.from_iterable(batch.groups):
        first, second = (turn.version for turn in episode.steps)
        assert first == 0
        assert second in (1, 2)


def test_the_batches_are_those_of_a_run_that_does_not_play_ahead():
    ahead = Run(PrefetchPace(2, 1, 6), refill=1, **slow(0)).play()
    one = collector(TwoTurns(), refill=1)
    for step, (_, _, batch) in ahead.items():
        alone = one.collect(step)
        assert [row.completion_ids for row in batch.rows] == [row.completion_ids for row in alone.rows]
        assert [row.advantage for row in batch.rows] == [row.advantage for row in alone.rows]


def test_it_plays_while_the_trainer_trains_and_not_further_than_allowed():
    run = Run(PrefetchPace(2, 1, 10))
    run.take()
    wait_for(lambda: len(run.player.played) >= 3 * 16)
    time.sleep(0.1)
    assert len(run.player.played) == 3 * 16, "the batch that was taken, and two ahead"
    run.ahead.stop()


def test_the_state_is_that_after_the_last_batch_that_was_taken():
    run = Run(PrefetchPace(2, 1, 10))
    fresh = collector(TwoTurns())
    assert run.ahead.state_dict() == fresh.state_dict()
    for step in range(3):
        run.take()
        fresh.collect(step)
        assert run.ahead.state_dict() == fresh.state_dict()
    run.ahead.stop()
    later = Run(PrefetchPace(1, 1, 10))
    later.ahead.load_state_dict(run.ahead.state_dict())
    later.step = 3
    _, batch = later.take()
    later.ahead.stop()
    assert [row.completion_ids for row in batch.rows] == [row.completion_ids for row in fresh.collect(3).rows]


def test_within_an_update_nothing_is_collected_and_later_batches_may_begin_after_it():
    run = Run(PrefetchPace(3, 1, 20), **slow(0))
    run.take()
    with run.ahead.updated(run.step):
        assert run.handed == [0, 1]
        assert len(run.player.played) == 4 * 16, "all that the first weights allow"
        time.sleep(0.05)
        assert len(run.player.played) == 4 * 16
    while run.step < 5:
        _, batch = run.take()
    # Batch 4 is allowed by the update at step 1, and begins with its weights.
    assert {turn.version for group in batch.groups for episode in group for turn in episode.steps} == {1}
    run.ahead.stop()


def test_a_batch_that_fails_raises_when_it_is_taken_and_not_before():
    def earns(problem, group, rng):
        if len(run.player.played) > 2 * 16:
            raise OSError("no device")
        return coin(problem, group, rng)

    run = Run(PrefetchPace(2, 1, 9), player=TwoTurns(earns))
    run.take()
    run.take()
    with pytest.raises(OSError, match="no device"):
        run.take()
    run.ahead.stop()


def test_stopping_abandons_the_episodes_that_run():
    run = Run(PrefetchPace(1, 1, 9))
    run.player.delay_s = lambda draws: 600.0 if len(run.player.played) > 16 else 0.0
    run.take()
    wait_for(lambda: run.player.in_flight == 16)
    run.ahead.stop()
    assert run.player.in_flight == 0
    assert not any(thread.name == "rstar2-collect-ahead" for thread in threading.enumerate())


def test_a_run_that_ends_leaves_nothing_to_collect():
    run = Run(PrefetchPace(3, 2, 6))
    for _ in range(3):
        run.take()
    time.sleep(0.1)
    assert len(run.player.played) == 3 * 16
    run.ahead.stop()


def test_what_needs_the_trainer_is_done_by_it_when_it_waits_for_that_batch():
    done = []

    class Asks(Run):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            plain = self.collector.collect

            def collect(step):
                batch = plain(step)
                self.ahead.on_trainer(lambda: done.append((step, self.step, threading.current_thread())))
                return batch

            self.collector.collect = collect

    Asks(PrefetchPace(2, 1, 6), **slow(0)).play()
    assert [(step, at) for step, at, _ in done] == [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (5, 5)]
    assert {thread for _, _, thread in done} == {threading.current_thread()}


@pytest.mark.parametrize("fails", [False, True])
def test_what_the_trainer_could_not_do_fails_the_batch(fails):
    run = Run(PrefetchPace(1, 1, 6))
    plain = run.collector.collect

    def measure():
        if fails:
            raise MemoryError("too long")
        return "measured"

    def collect(step):
        assert run.ahead.on_trainer(measure) == "measured"
        return plain(step)

    run.collector.collect = collect
    if fails:
        with pytest.raises(MemoryError, match="too long"):
            run.take()
    else:
        run.take()
    run.ahead.stop()


def test_two_processes_collect_ahead_what_one_does():
    def work(ranks):
        found = Run(PrefetchPace(2, 1, 6), ranks=ranks, **slow(ranks.rank)).play()
        return [[row.completion_ids for row in batch.rows] for _, _, batch in found.values()]

    one = [[row.completion_ids for row in batch.rows] for _, _, batch in Run(PrefetchPace(2, 1, 6)).play().values()]
    first, second = in_processes(2, work)
    assert [a + b for a, b in zip(first, second, strict=True)] == one


def test_a_process_that_fails_ahead_ends_all():
    def work(ranks):
        def earns(problem, group, rng):
            if ranks.rank and len(run.player.played) > 2 * 8:
                raise OSError("no device")
            return coin(problem, group, rng)

        run = Run(PrefetchPace(1, 1, 9), player=TwoTurns(earns), ranks=ranks)
        return run.play()

    first, second = in_each(2, work)
    assert isinstance(second, OSError)
    assert isinstance(first, OtherProcessError)


@pytest.mark.parametrize("behind", [0, 1])
def test_processes_that_stop_at_the_same_step_wait_for_nobody(behind):
    def work(ranks):
        # One plays on and on; the other waits for it where both agree.
        slow_one = ranks.rank == behind
        run = Run(PrefetchPace(1, 1, 9), ranks=ranks)
        run.player.delay_s = lambda draws: 600.0 if slow_one and len(run.player.played) > 8 else 0.0
        run.take()
        begun = time.monotonic()
        run.ahead.stop()
        assert not run.ahead._thread.is_alive()
        return time.monotonic() - begun

    assert max(in_processes(2, work)) < 25


def test_a_process_enters_what_another_has_begun_before_it_stops():
    begun = threading.Event()

    def work(ranks):
        run = Run(PrefetchPace(2, 1, 9), ranks=ranks)
        plain = run.collector.state_dict

        def held():
            """Between its second and its third batch, this process waits until it is told to stop."""
            if threading.current_thread() is run.ahead._thread and run.collector.counts["steps"] == 2:
                wait_for(lambda: run.ahead._stopped)
            return plain()

        if ranks.rank == 1:
            run.collector.state_dict = held
        run.take()
        if ranks.rank == 0:
            wait_for(lambda: run.ahead._now == 2)
            begun.set()
        assert begun.wait(60)
        run.ahead.stop()
        assert not run.ahead._thread.is_alive()
        return type(run.ahead._failed())

    found = in_processes(2, work)
    assert set(found) <= {StoppedError, OtherProcessError}, "nobody waited for a process that had left"
