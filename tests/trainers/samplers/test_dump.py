"""``dump``: the bandit's bounds, its window, and where its shares go."""

from __future__ import annotations

import math

import pytest
from outcomes import by_source, went

from rstar2_env.trainers.samplers.base import Start
from rstar2_env.trainers.samplers.dump import Dump


def told(kind, advantage, episodes=8):
    return went(Start(0, {}, kind), 4, episodes, advantage=advantage)


def test_the_golden_shares():
    sampler = Dump(0, by_source("ab"))
    sampler.observe([told("a", 0.2), told("a", 0.4), told("b", 0.1)])
    # As in the released code, 8 episodes a group: 16 of a and 8 of b among 24.
    bounds = [0.3 + math.sqrt(2 * math.log(25) / 17), 0.1 + math.sqrt(2 * math.log(25) / 9)]
    weights = [math.exp(bound / 0.1) for bound in bounds]
    expected = {kind: weight / sum(weights) for kind, weight in zip("ab", weights, strict=True)}
    assert sampler.shares == pytest.approx(expected)
    assert sampler.shares["a"] == pytest.approx(0.4246, abs=1e-4)


def test_without_an_outcome_all_kinds_are_alike():
    sampler = Dump(0, by_source("abcd"))
    assert sampler.shares == pytest.approx(dict.fromkeys("abcd", 0.25))
    sampler.observe([told("a", 0.9, episodes=0)])
    assert sampler.shares == pytest.approx(dict.fromkeys("abcd", 0.25))


def test_the_mean_is_over_the_latest_episodes_and_the_count_over_all():
    sampler = Dump(0, by_source("ab"), window=16, temperature=1.0)
    sampler.observe([told("a", 9.0), told("a", 0.3), told("a", 0.1)])
    spread = math.sqrt(2 * math.log(25))
    assert math.log(sampler.shares["a"] / sampler.shares["b"]) == pytest.approx(0.2 + spread / 5 - spread)


def test_a_group_at_the_edge_of_the_window_counts_with_the_episodes_inside():
    sampler = Dump(0, by_source("ab"), window=10, temperature=1.0)
    sampler.observe([told("a", 9.0), told("a", 0.6), told("a", 0.1)])
    spread = math.sqrt(2 * math.log(25))
    expected = (8 * 0.1 + 2 * 0.6) / 10 + spread / 5 - spread
    assert math.log(sampler.shares["a"] / sampler.shares["b"]) == pytest.approx(expected)


def test_a_low_temperature_plays_the_best_kind_alone():
    sampler = Dump(0, by_source("ab"), temperature=0.001)
    for _ in range(50):
        sampler.observe([told("a", 0.5), told("b", 0.1)])
    assert {start.kind for start in sampler.draw(40)} == {"a"}
