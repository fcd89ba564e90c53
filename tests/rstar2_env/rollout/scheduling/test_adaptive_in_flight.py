"""How many episodes play at once: more with every turnover while there is room, and fewer before there is none."""

from __future__ import annotations

from typing import Any

import pytest

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.rollout import EngineStats
from rstar2_env.rollout.scheduling.adaptive_in_flight import GrowthRules, InFlight


def load(usage: float, waiting: int = 0, preemptions: int = 0) -> EngineStats:
    return EngineStats(kv_usage=usage, waiting=waiting, preemptions=preemptions)


def test_it_grows_by_a_quarter_while_as_many_episodes_end_as_play() -> None:
    number = InFlight(40, 1000)
    for ended in range(1, 41):
        number.look([load(0.5)], playing=number.number, ended=ended)
    assert number.number == pytest.approx(49, abs=1)


@pytest.mark.parametrize("most", [45, 1000])
def test_nothing_ended_means_nothing_is_known_yet_and_there_is_a_largest_number(most: int) -> None:
    number = InFlight(40, most)
    assert [number.look([load(0.1)], playing=40, ended=0) for _ in range(9)] == [40] * 9
    for ended in range(10, 1000, 10):
        number.look([load(0.1)], playing=number.number, ended=ended)
    assert number.number == min(most, number.number)
    assert number.number == 45 if most == 45 else number.number > 200


@pytest.mark.parametrize(
    "loads",
    [[load(0.8)], [load(0.1), load(0.8)], [load(0.1, waiting=3)]],
    ids=["nearly full", "one is nearly full", "requests wait"],
)
def test_it_stays_where_one_engine_has_no_more_room(loads: list[EngineStats]) -> None:
    number = InFlight(40, 1000)
    number.look(loads, playing=40, ended=0)
    assert number.look(loads, playing=40, ended=40) == 40


def test_it_does_not_grow_while_fewer_play_than_may() -> None:
    number = InFlight(40, 1000)
    assert number.look([load(0.1)], playing=10, ended=5) == 40


def test_a_full_cache_cuts_it_once_until_that_many_play() -> None:
    number = InFlight(100, 1000)
    assert number.look([load(0.97)], playing=100, ended=0) == 80
    assert number.look([load(0.98)], playing=95, ended=5) == 80
    assert number.look([load(0.96)], playing=80, ended=20) == 64
    assert number.look([load(0.9)], playing=64, ended=40) == 64


def test_a_lost_cache_cuts_it_however_full_the_caches_look_now() -> None:
    number = InFlight(100, 1000)
    number.look([load(0.5, preemptions=7)], playing=100, ended=0)
    assert number.look([load(0.5, preemptions=7)], playing=100, ended=0) == 100
    assert number.look([load(0.5, preemptions=8)], playing=100, ended=0) == 80


def test_an_engine_that_counts_from_0_again_lost_no_cache() -> None:
    number = InFlight(100, 1000)
    number.look([load(0.5, preemptions=7)], playing=100, ended=0)
    assert number.look([load(0.5, preemptions=0)], playing=100, ended=0) == 100


def test_it_never_falls_below_the_least_nor_waits_for_episodes_of_an_earlier_rollout() -> None:
    number = InFlight(8, 1000, least=4)
    for _ in range(9):
        number.look([load(1.0)], playing=number.number, ended=0)
    assert number.number == 4
    number.look([load(0.2)], playing=4, ended=500)
    number.begin()
    before = number.number
    number.look([load(0.2)], playing=before, ended=0)
    assert number.number == before


def test_without_a_word_of_the_engines_nothing_changes() -> None:
    assert InFlight(40, 1000).look([], playing=40, ended=40) == 40


@pytest.mark.parametrize("wrong", [{"cut": 1.0}, {"growth": 1.0}, {"grow_below": 1.5}])
def test_rules_that_lead_nowhere_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        GrowthRules(**wrong)


def test_on_engines_that_hold_a_hundred_it_comes_to_rest_near_a_hundred() -> None:
    """Each episode takes one hundredth of the cache at its end, and half of it on average."""
    number, ended = InFlight(20, 1000), 0
    seen = []
    for _ in range(400):
        playing = number.number
        usage = min(1.0, playing * 0.5 / 100)
        preempted = sum(1 for _ in range(max(0, playing - 200)))
        number.look([load(usage, preemptions=preempted)], playing=playing, ended=ended)
        ended += max(1, playing // 10)
        seen.append(playing)
    assert all(140 <= playing <= 200 for playing in seen[200:])
