"""The paper's claim in miniature: errors that cost nothing stay under GRPO, and fade under Resample-on-Correct."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def roc_sim(benchmark_named: Callable[[str], ModuleType]) -> ModuleType:
    return benchmark_named("roc_sim")


def test_the_successes_that_are_kept_hold_far_fewer_errors(roc_sim: ModuleType) -> None:
    for name, most in (("RoC, rank", 0.03), ("RoC, sample", 0.045)):
        arm = next(arm for arm in roc_sim.ARMS if arm.name == name)
        before, after = roc_sim.one_batch(arm.selector, groups=150)
        assert before == pytest.approx(0.15, abs=0.02)
        assert after < most


@pytest.mark.slow
def test_where_every_answer_is_right_only_ties_of_quality_still_teach(roc_sim: ModuleType) -> None:
    ends = {arm.name: roc_sim.simulate(arm, 60, seed=0, right_rate=1.0) for arm in roc_sim.ARMS}
    for name in ("GRPO, 16", "GRPO, 32", "RoC, rank", "RoC, sample"):
        assert ends[name] == pytest.approx(0.15), "a group of equal rewards moves nothing"
    assert ends["RoC, ties"] < 0.05


@pytest.mark.slow
def test_a_hundred_steps_separate_the_arms(roc_sim: ModuleType) -> None:
    ends = {arm.name: roc_sim.simulate(arm, 100, seed=0) for arm in roc_sim.ARMS}
    assert 0.10 < ends["GRPO, 16"] < 0.21
    assert 0.10 < ends["GRPO, 32"] < 0.21
    assert ends["RoC, rank"] < 0.045
    assert ends["RoC, sample"] < 0.045
    # Cleaning the failures, too, takes back what cleaning the successes gives.
    assert ends["sorted negatives"] > 2 * ends["RoC, sample"]


@pytest.mark.slow
def test_three_hundred_steps_reach_the_published_targets(roc_sim: ModuleType) -> None:
    ends = {arm.name: roc_sim.simulate(arm, 300, seed=0) for arm in roc_sim.ARMS[:4]}
    assert 0.10 < ends["GRPO, 16"] < 0.20
    assert ends["RoC, rank"] == pytest.approx(0.0106, abs=0.002)
    assert ends["RoC, sample"] == pytest.approx(0.0113, abs=0.002)


@pytest.mark.proof
@pytest.mark.parametrize("seed", range(1, 5))
def test_the_targets_are_reached_from_other_seeds(
    roc_sim: ModuleType, seed: int, record_property: Callable[[str, object], None]
) -> None:
    ends = {arm.name: roc_sim.simulate(arm, 300, seed=seed) for arm in roc_sim.ARMS[:4]}
    for name, end in ends.items():
        record_property(name, f"{end:.4f}")
    assert min(ends["GRPO, 16"], ends["GRPO, 32"]) > 0.08
    assert max(ends["RoC, rank"], ends["RoC, sample"]) < 0.02
