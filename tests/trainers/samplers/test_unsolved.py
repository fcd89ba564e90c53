"""``unsolved``: what is always right is left out, once, by the latest episodes or by an evaluation."""

from __future__ import annotations

from collections import Counter

import pytest
from outcomes import steps, went

from rstar2_env.core.episode import Episode
from rstar2_env.core.run_folder import RunWriter
from rstar2_env.trainers.samplers.unsolved import Unsolved

IDS = [f"p{n}" for n in range(12)]
RATES = {name: 1.0 if at < 5 else 0.75 for at, name in enumerate(IDS)}


def test_problems_with_eight_of_eight_are_left_out_after_the_steps():
    sampler = Unsolved(IDS, after=6)
    assert len(set(steps(sampler, RATES, 6))) == 12
    assert sampler.left == 7
    later = Counter(steps(sampler, RATES, 14))
    assert sorted(later) == sorted(IDS[5:])
    assert set(later.values()) == {8}


def test_eight_episodes_must_be_known_and_the_latest_count():
    sampler = Unsolved(IDS, after=4)
    sampler.observe([went("p0", 4, 4), went("p1", 4, 4), went("p2", 0, 8)])
    sampler.observe([went("p0", 4, 4), went("p2", 8, 8)])
    sampler.observe([went("p3", 7, 8)])
    assert sampler.left == 12
    sampler.observe([])
    assert sampler.left == 10  # p1 has four episodes alone; p2 failed before its latest eight


def test_it_is_done_once():
    sampler = Unsolved(IDS, after=3)
    steps(sampler, RATES, 3)
    left = sampler.left
    sampler.observe([went(name, 8) for name in IDS])
    assert sampler.left == left == 7


def test_an_evaluation_decides_from_the_start(tmp_path):
    writer = RunWriter(tmp_path / "measured", kind="evaluation")
    writer.begin({})
    solved = [Episode(problem_id="p0", end="answered", correct=True)] * 8
    once = [Episode(problem_id="p1", end="answered", correct=n > 0) for n in range(8)]
    few = [Episode(problem_id="p2", end="answered", correct=True)] * 7
    writer.held_out(0, [*solved, *once, *few])
    sampler = Unsolved(IDS, rates=str(tmp_path / "measured"))
    assert sampler.left == 11
    assert "p0" not in steps(sampler, RATES, 11)


def test_where_all_is_solved_all_goes_on():
    sampler = Unsolved(IDS, after=3)
    steps(sampler, dict.fromkeys(IDS, 1.0), 3)
    assert sampler.left == 0
    assert len(set(steps(sampler, RATES, 3))) == 12


@pytest.mark.parametrize("seed", range(3))
def test_before_the_filter_every_problem_comes_equally_often(seed):
    sampler = Unsolved(IDS, seed, after=1000)
    assert set(Counter(steps(sampler, RATES, 9)).values()) == {3}
