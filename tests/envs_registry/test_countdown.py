"""rstar2/Countdown-v0: every instance can be solved, with any of its numbers, none of them twice."""

import gymnasium as gym
import pytest

import rstar2_env  # noqa: F401  # registers the id
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.envs_registry.countdown import Countdown
from rstar2_env.worlds.expressions import read_expression, solve

FOUR = {"numbers": [2, 3, 7, 10], "target": 17}


@pytest.mark.parametrize("answer", ["10+7", "7+10", "(10+7)*(3-2)", "2*7+3", "10+7=17"])
def test_any_of_the_numbers_will_do(answer):
    assert Countdown().solves(FOUR, answer)


@pytest.mark.parametrize("answer", ["17", "10+10-3", "10+7+7-7", "10+8-1", "10*7", "3*7-2*2"])
def test_none_twice_and_no_other(answer):
    assert not Countdown().solves(FOUR, answer)


def test_fractions_on_the_way_are_allowed():
    assert Countdown().solves({"numbers": [3, 3, 8, 8, 9], "target": 24}, "8/(3-8/3)")


@pytest.mark.parametrize("numbers", [2, 3, 4, 6, 8])
def test_instances_keep_to_their_ranges_and_can_be_solved(numbers):
    family = Countdown(numbers=numbers, largest=30, least_target=20, largest_target=60)
    for index in range(20):
        problem = family.source()[index]
        meta = problem.meta
        assert len(meta["numbers"]) == numbers
        assert 1 <= min(meta["numbers"]) <= max(meta["numbers"]) <= 30
        assert 20 <= meta["target"] <= 60
        assert meta["target"] not in meta["numbers"]
        assert family.solves(meta, problem.answer)
        assert len(read_expression(problem.answer).numbers) == numbers
        if numbers <= 3:
            assert solve(meta["numbers"], meta["target"]) is not None


def test_targets_are_spread():
    source = Countdown().source()
    targets = [source[index].meta["target"] for index in range(300)]
    assert len(set(targets)) > 80
    assert sum(target <= 55 for target in targets) < 240


def test_a_range_of_targets_that_is_none_is_refused():
    with pytest.raises(ConfigurationError, match="largest_target must be an integer from 50 to 1000000, not 40"):
        gym.make("rstar2/Countdown-v0", least_target=50, largest_target=40)
