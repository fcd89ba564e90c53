"""``skill_gap``: shares of the next cycle in proportion to the failures of the last."""

from __future__ import annotations

import pytest
from outcomes import by_source, steps

from rstar2_env.trainers.samplers.skill_gap import SkillGap


def test_the_golden_shares_of_the_second_cycle():
    sampler = SkillGap(0, by_source("abc"), every=10)
    steps(sampler, {"a": 0.75, "b": 0.5, "c": 0.0}, 9)
    assert sampler.shares == pytest.approx(dict.fromkeys("abc", 1 / 3))
    steps(sampler, {"a": 0.75, "b": 0.5, "c": 0.0}, 1)
    assert sampler.shares == pytest.approx({"a": 1 / 7, "b": 2 / 7, "c": 4 / 7})


@pytest.mark.parametrize("rate", [0.0, 0.5, 1.0])
def test_equal_success_gives_equal_shares(rate):
    sampler = SkillGap(0, by_source("abc"), every=2)
    steps(sampler, dict.fromkeys("abc", rate), 4, batch=12)
    assert sampler.shares == pytest.approx(dict.fromkeys("abc", 1 / 3))


def test_a_kind_that_always_succeeds_keeps_the_floor():
    for floor, share in ((0.0, 0.0), (0.5, 1 / 3)):
        sampler = SkillGap(0, by_source("ab"), every=5, floor=floor)
        steps(sampler, {"a": 1.0, "b": 0.0}, 5)
        assert sampler.shares["a"] == pytest.approx(share)


def test_after_the_cycles_the_shares_stay():
    sampler = SkillGap(0, by_source("ab"), every=3, cycles=2)
    steps(sampler, {"a": 0.75, "b": 0.25}, 3)
    before = sampler.shares
    steps(sampler, {"a": 0.25, "b": 0.75}, 9)
    assert sampler.shares == before != {"a": 0.5, "b": 0.5}
