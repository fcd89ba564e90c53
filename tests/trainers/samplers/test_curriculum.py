"""``curriculum``: the next level comes when enough of this one is solved, and never before or back."""

from __future__ import annotations

import pytest
from outcomes import by_source, steps

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.problems import FixedSource, Problem
from rstar2_env.trainers.samplers.curriculum import Curriculum

LEVELS = FixedSource([Problem(f"{level}-{n}", "?", "1", "", {"level": level}) for level in (3, 1, 2) for n in range(5)])


def test_levels_are_ascending_and_each_waits_for_its_window():
    sampler = Curriculum(0, LEVELS, window=8)
    assert steps(sampler, dict.fromkeys("123", 1.0), 6) == ["1"] * 8 + ["2"] * 8 + ["3"] * 8


@pytest.mark.parametrize(("above", "rate", "level"), [(0.5, 0.5, "1"), (0.5, 0.625, "2"), (0.75, 0.625, "1")])
def test_the_pass_rate_must_exceed_the_threshold(above, rate, level):
    sampler = Curriculum(0, LEVELS, above=above, window=8)
    steps(sampler, dict.fromkeys("123", rate), 2)
    assert sampler.level == level


def test_only_the_latest_groups_count():
    sampler = Curriculum(0, LEVELS, window=8)
    steps(sampler, {"1": 0.0}, 20)
    steps(sampler, {"1": 1.0}, 1)
    assert sampler.level == "1"
    steps(sampler, {"1": 0.75}, 1)
    assert sampler.level == "2"


def test_the_last_level_stays():
    sampler = Curriculum(0, LEVELS, window=4)
    assert steps(sampler, dict.fromkeys("123", 1.0), 9)[-20:] == ["3"] * 20


def test_levels_may_be_given():
    sampler = Curriculum(0, by_source("ab"), by="source", order=("b", "a"))
    assert sampler.level == "b"
    with pytest.raises(ConfigurationError, match="the field 'level'"):
        Curriculum(0, by_source("ab"))
