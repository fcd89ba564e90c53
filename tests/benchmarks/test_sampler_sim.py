"""The samplers' claims in miniature: each goes where there is something to learn."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def sim(benchmark_named: Callable[[str], ModuleType]) -> ModuleType:
    return benchmark_named("sampler_sim")


def test_mopps_finds_the_problems_that_are_sometimes_solved(sim: ModuleType) -> None:
    found = sim.mopps(200, seed=0)
    assert found["mopps"] >= 0.9
    assert 0.6 < found["uniform"] < 0.72
    assert found["correlation"] > 0.95


def test_dump_plays_the_most_learnable_kind_most(sim: ModuleType) -> None:
    shares = sim.dump(400, seed=0)
    assert shares["right"] >= 0.7
    assert shares["near"] > shares["hard"] > 0
    assert shares["easy"] > 0.02, "no kind is forgotten"


def test_the_mixture_moves_to_the_skill_that_fails(sim: ModuleType) -> None:
    *_, last = sim.skill_gap({"a": 0.9, "b": 0.5, "c": 0.1})
    assert last == pytest.approx({"a": 1 / 15, "b": 5 / 15, "c": 9 / 15}, abs=0.08)


def test_a_curriculum_climbs_as_its_levels_are_learned(sim: ModuleType) -> None:
    levels = sim.curriculum()
    assert levels == sorted(levels)
    assert set(levels) == {"1", "2", "3"}
    # A higher threshold keeps a level longer.
    assert sim.curriculum(above=0.75).count("1") > levels.count("1")


def test_hard_focus_plays_ever_harder_problems_of_a_shrinking_set(sim: ModuleType) -> None:
    means, sizes = sim.hard_focus()
    assert means[0] > 0.4
    assert means[-1] < 0.1
    assert sizes == sorted(sizes, reverse=True)
    assert (sizes[0], sizes[-1]) == (500, 32)


@pytest.mark.proof
@pytest.mark.parametrize("seed", range(1, 5))
def test_the_targets_are_reached_from_other_seeds(
    sim: ModuleType, seed: int, record_property: Callable[[str, object], None]
) -> None:
    found, shares = sim.mopps(200, seed), sim.dump(400, seed)
    for name, value in {**found, **shares}.items():
        record_property(name, f"{value:.3f}")
    assert found["mopps"] >= 0.9
    assert found["mopps"] > found["uniform"] + 0.2
    assert shares["right"] >= 0.7
