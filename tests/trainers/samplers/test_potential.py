"""``potential``: 4 p (1 - p), and stages that add problems of ever lower potential."""

from __future__ import annotations

from collections import Counter

import pytest
from outcomes import steps

from rstar2_env.core.episode import Episode
from rstar2_env.core.run_folder import RunWriter
from rstar2_env.trainers.samplers.potential import Potential, potential

IDS = [f"p{n}" for n in range(8)]
RATES = dict(zip(IDS, (0.5, 0.0, 0.25, 1.0, 0.625, 0.125, 0.875, 0.75), strict=True))
FALLING = ["p0", "p4", "p2", "p7", "p5", "p6", "p1", "p3"]


@pytest.mark.parametrize(
    ("rate", "size"), [(0.05, 0.19), (0.25, 0.75), (0.5, 1.0), (0.9, 0.36), (0.0, 0.0), (1.0, 0.0)]
)
def test_the_golden_potentials(rate, size):
    assert potential(rate) == pytest.approx(size)


def test_a_first_pass_measures_and_then_each_stage_adds_a_quarter():
    sampler = Potential(IDS)
    assert set(Counter(steps(sampler, RATES, 2)).values()) == {1}
    for stage in range(1, 5):
        assert sampler.stage == stage
        assert sampler.problems == FALLING[: 2 * stage]
        own = steps(sampler, RATES, 2, batch=stage)
        assert set(own) <= set(FALLING[: 2 * stage])
    steps(sampler, RATES, 20)
    assert (sampler.stage, sampler.problems) == (4, FALLING)


def test_stages_may_last_a_number_of_steps():
    sampler = Potential(IDS, steps=3, stages=2)
    steps(sampler, RATES, 2)
    assert [sampler.stage for _ in range(5) if steps(sampler, RATES, 1)] == [1, 1, 2, 2, 2]


def test_what_is_measured_is_fixed_when_the_stages_begin():
    sampler = Potential(IDS)
    steps(sampler, RATES, 2)
    steps(sampler, dict.fromkeys(IDS, 0.5), 20)
    assert sampler.problems == FALLING


@pytest.mark.parametrize("stages", [1, 3, 4, 8])
def test_the_stages_divide_the_problems(stages):
    sampler = Potential(IDS, stages=stages, steps=1)
    steps(sampler, RATES, 2)
    sizes = []
    for _ in range(stages):
        sizes.append(len(sampler.problems))
        steps(sampler, RATES, 1)
    assert sizes == sorted(sizes)
    assert sizes[-1] == 8
    assert max(b - a for a, b in zip([0, *sizes], sizes, strict=False)) <= -(-8 // stages)


def test_an_evaluation_measures_instead(tmp_path):
    writer = RunWriter(tmp_path / "measured", kind="evaluation")
    writer.begin({})
    played = [Episode(problem_id=name, end="answered", correct=n < 8 * RATES[name]) for name in IDS for n in range(8)]
    writer.held_out(0, played)
    sampler = Potential(IDS, rates=str(tmp_path / "measured"))
    assert (sampler.stage, sampler.problems) == (1, FALLING[:2])
