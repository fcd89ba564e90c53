"""What estimators share: means and deviations without rounding errors, results that are checked, one number of many."""

from __future__ import annotations

import numpy as np
import pytest
from credit import Said, advantages, episode, plain

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.testing.training.processes import in_processes
from rstar2_env.trainers.advantages.base import (
    as_number,
    centred,
    check_advantages,
    check_group_size,
    deviation,
    measured,
    moments,
    sums_by_task,
    without_rounding,
)
from rstar2_env.trainers.advantages.group import GroupNorm
from rstar2_env.trainers.ranks import ONE


class TestCentred:
    def test_values_that_differ_by_a_billionth_of_the_largest_are_equal(self):
        """At the bound itself: the range is 1, and the largest value is 1e9."""
        assert list(centred(np.array([1e9, 1e9 - 1]))) == [0, 0]
        assert list(centred(np.array([1e9, 1e9 - 2]))) == [1, -1]

    def test_the_bound_grows_with_the_values(self):
        assert list(centred(np.array([1e12, 1e12 + 100]))) == [0, 0]
        assert list(centred(np.array([1e-6, 3e-6]))) == pytest.approx([-1e-6, 1e-6], rel=1e-6)
        assert list(centred(np.array([-1e12, -1e12 - 100]))) == [0, 0]

    def test_no_values_have_no_mean(self):
        assert centred(np.zeros(0)).shape == (0,)


class TestWithoutRounding:
    def test_a_billionth_of_the_largest_number_is_rounding(self):
        differences = np.array([1.0, -1.0, 1.5, -1.5])
        assert list(without_rounding(differences, np.array([-1e9, 2.0]))) == [0, 0, 1.5, -1.5]

    def test_differences_of_no_numbers_are_kept(self):
        assert list(without_rounding(np.array([1e-12]), np.zeros(0))) == [1e-12]


class TestDeviationAndMoments:
    def test_one_value_has_no_deviation(self):
        assert deviation(np.array([5.0])) == 0.0
        assert moments(np.array([3.0]), ONE) == (3.0, 0.0)

    def test_no_value_has_neither(self):
        assert deviation(np.zeros(0)) == 0.0
        assert moments(np.zeros(0), ONE) == (0.0, 0.0)

    def test_two_values(self):
        assert deviation(np.array([1.0, 3.0])) == pytest.approx(2**0.5)
        assert moments(np.array([1.0, 3.0]), ONE) == pytest.approx((2.0, 2**0.5))

    def test_a_small_deviation_of_large_values_is_exact(self):
        assert moments(np.array([1e9, 1e9 + 2.0]), ONE) == (1e9 + 1, pytest.approx(2**0.5))

    def test_the_values_of_two_processes(self):
        found = in_processes(2, lambda ranks: moments(np.array([[1.0], [2.0, 6.0]][ranks.rank]), ranks))
        assert found == [pytest.approx((3.0, 7**0.5))] * 2


def test_the_sums_of_a_task_are_over_all_its_values_on_all_processes():
    own = [[("a", 1.0), ("b", 2.0), ("a", 4.0)], [("b", 8.0), ("c", 16.0)]]
    assert in_processes(2, lambda ranks: sums_by_task(ranks, own[ranks.rank])) == [{"a": 5.0, "b": 10.0, "c": 16.0}] * 2


def test_estimators_of_groups_return_plain_numbers():
    (values,) = advantages("group_norm", plain(1, 0))
    assert [type(value) for value in values] == [float, float]


class TestAResult:
    group = (episode(Said(2, 1)), episode(Said(1, 0)))

    @pytest.mark.parametrize("values", [[1.0, -1.0], [np.array([1.0, 2.0, 3.0]), np.zeros(1)], [np.array(1.0), 0]])
    def test_of_a_number_or_one_per_token_is_accepted(self, values):
        check_advantages(object(), [self.group], [values])

    @pytest.mark.parametrize(
        "values",
        [
            [float("nan"), 0.0],
            [0.0, float("inf")],
            [np.zeros(2), 0.0],
            [np.zeros((3, 1)), 0.0],
            [np.array([0.0, np.nan, 1.0]), 0.0],
            [np.full(3, np.nan), 0.0],
        ],
    )
    def test_of_another_shape_or_without_a_finite_number_is_refused(self, values):
        with pytest.raises(ConfigurationError, match="must return one finite number for each episode"):
            check_advantages(object(), [self.group], [values])

    @pytest.mark.parametrize("values", [[], [[1.0, 0.0], []], [[1.0]]])
    def test_of_another_number_of_values_is_refused(self, values):
        with pytest.raises(ConfigurationError, match="must return one value for each episode"):
            check_advantages(object(), [self.group], values)


class TestAsNumber:
    one = episode(Said(2, 2), Said(1, 0))

    def test_a_number_stays(self):
        assert as_number(-0.5, self.one) == as_number(np.array(-0.5), self.one) == as_number(np.float64(-0.5), self.one)
        assert as_number(-0.5, self.one) == -0.5

    def test_of_tokens_it_is_the_mean_size_on_the_policys(self):
        assert as_number(np.array([1.0, -2.0, 50.0, 50.0, 6.0]), self.one) == 3.0


def test_a_measurement_that_was_not_made_is_named():
    one = episode(Said(1))
    with pytest.raises(ConfigurationError, match="'answer' of an episode is missing"):
        measured(one, "answer")
    one.measured["answer"] = [0.5]
    assert measured(one, "answer").tolist() == [0.5]


def test_a_group_of_the_least_size_is_enough():
    check_group_size(GroupNorm(), 2)
    with pytest.raises(ConfigurationError, match="at least 2 episodes per group; group_size is 1"):
        check_group_size(GroupNorm(), 1)
