"""The limit of the queue follows the load of the engines, one for all processes."""

from __future__ import annotations

from contextlib import closing
from types import SimpleNamespace

import pytest
from small_run import SmallPlayer, collector

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.rollout import EngineStats
from rstar2_env.rollout.scheduling.adaptive_in_flight import InFlight
from rstar2_env.testing.training.processes import in_processes
from rstar2_env.trainers.queue.adaptive_limit import Adaptive, adaptive


def engine(capacity=1000, **more):
    return SimpleNamespace(capacity=lambda: capacity, stats=lambda: EngineStats(kv_usage=0.1), **more)


def test_it_begins_with_what_fits_if_all_grow_to_their_longest_and_never_asks_for_more_than_may():
    def first(**options):
        found = {"longest": 100, "most": 64, "processes": 2, **options}
        return adaptive(engine(), "vllm-server", **found).in_flight.number

    assert first() == 10
    assert first(most=4) == 8
    assert first(longest=2000) == 2, "each process may play one"


def test_an_engine_that_cannot_tell_its_load_is_refused():
    with pytest.raises(ConfigurationError, match=r"'transformers' .*adaptive_in_flight"):
        adaptive(engine(forget=lambda: None), "transformers", longest=100, most=64, processes=1)


def test_every_process_needs_the_one_queue():
    limits = Adaptive(lambda: [], InFlight(1, 1))

    def work(ranks):
        return collector(ranks=ranks, limits=limits, one_queue=False)

    with pytest.raises(ConfigurationError, match=r"one queue of episodes .*one_queue"):
        in_processes(2, work)


@pytest.mark.parametrize("size", [1, 2])
def test_episodes_of_all_processes_together_follow_the_fullest_cache(size):
    """An engine whose cache is full with more than six episodes, and half empty with four."""
    players = [SmallPlayer(delay_s=lambda rng: 0.01 + 0.02 * rng.random()) for _ in range(size)]
    seen = []

    async def loads():
        playing = sum(player.in_flight for player in players)
        seen.append(playing)
        return [EngineStats(kv_usage=min(1.0, playing / 6.2))]

    limits = Adaptive(loads, InFlight(2, 1000, least=size), every_s=0.005)

    def work(ranks):
        player = players[ranks.rank]
        collect = collector(player, ranks=ranks, limits=limits, group_size=16)
        with closing(collect):
            return [len(collect.collect(step).groups) for step in range(2)]

    assert sum(sum(groups) for groups in in_processes(size, work)) == 8
    assert max(seen) <= 16, "a fraction of the 64 that a step has"
    assert sum(len(player.played) for player in players) == 2 * 4 * 16


def test_a_look_that_fails_ends_the_rollout():
    async def loads():
        raise OSError("no answer")

    limits = Adaptive(loads, InFlight(2, 10), every_s=0.001)
    player = SmallPlayer(delay_s=lambda rng: 1000.0)
    with pytest.raises(OSError, match="no answer"):
        collector(player, limits=limits).collect(0)
    assert player.in_flight == 0
