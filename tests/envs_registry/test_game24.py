"""rstar2/Game24-v0: every instance can be solved, every right expression counts, nothing is run."""

import pytest

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.envs_registry.game24 import Game24
from rstar2_env.worlds import UnreadableAnswerError

HAND = {"numbers": [3, 3, 8, 8], "target": 24}


@pytest.mark.parametrize("answer", ["8/(3-8/3)", "8 / (3 - 8 / 3)", "8\\div(3-\\frac{8}{3})", "8/(3-8/3) = 24"])
def test_a_right_expression_counts_in_any_writing(answer):
    assert Game24().solves(HAND, answer)


@pytest.mark.parametrize("answer", ["3*8", "3*8+3-3", "8+8+8", "8/(3-8/3)*1", "24", "8*(3-8/3)", "8/(8/3-3)", "38-8"])
def test_another_value_or_other_numbers_do_not(answer):
    assert not Game24().solves(HAND, answer)


@pytest.mark.parametrize("answer", ["", "8/(3-8/3", "no way", "8/(3-8/3)=25", "-(8/(8/3-3))", "print(24)", "3**3"])
def test_what_is_no_expression_is_unreadable(answer):
    with pytest.raises(UnreadableAnswerError):
        Game24().solves(HAND, answer)


def test_a_division_by_zero_is_just_wrong():
    assert not Game24().solves(HAND, "8/(3-3)+8")


@pytest.mark.parametrize("knobs", [{"numbers": 3}, {"largest": 9}, {"target": 100}, {"numbers": 5, "largest": 6}])
def test_knobs_shape_the_instance(knobs):
    family = Game24(**knobs)
    for index in range(5):
        problem = family.source("test")[index]
        assert len(problem.meta["numbers"]) == family.numbers
        assert max(problem.meta["numbers"]) <= family.largest
        assert problem.meta["target"] == family.target
        assert family.solves(problem.meta, problem.answer)


def test_a_target_out_of_reach_says_so():
    with pytest.raises(ConfigurationError, match="too few different problems"):
        Game24(numbers=2, largest=3, target=1000).source()[0]
