"""``maxrl``: golden numbers, and the gradient that they make."""

import numpy as np
import pytest
from credit import advantages, plain


@pytest.mark.parametrize(
    ("rewards", "expected"),
    [
        ([1, 0, 0, 0], [3, -1, -1, -1]),
        ([1, 1, 0, 0], [1, 1, -1, -1]),
        ([1, 1, 1, 0], [1 / 3, 1 / 3, 1 / 3, -1]),
    ],
)
def test_golden_numbers(rewards, expected):
    assert advantages("maxrl", plain(*rewards)) == [pytest.approx(expected)]


@pytest.mark.parametrize("rewards", [[0, 0, 0], [-1, 0, 0], [1, -1], [0.1] * 3])
def test_a_group_whose_mean_is_not_positive_or_whose_rewards_are_equal_gets_zeros(rewards):
    assert advantages("maxrl", plain(*rewards)) == [[0.0] * len(rewards)]


def test_groups_of_one_and_of_none_are_taken():
    assert advantages("maxrl", plain(1.0), plain()) == [[0.0], []]


def test_the_mean_over_the_group_is_the_mean_over_the_right_ones_less_that_over_all():
    """So it is the gradient of the logarithm of the pass rate, whatever the scores of the tokens are."""
    rng = np.random.default_rng(0)
    rewards = np.array([1, 0, 0, 1, 0, 0, 0, 0])
    scores = rng.normal(size=8)
    (values,) = advantages("maxrl", plain(*rewards))
    assert np.mean(values * scores) == pytest.approx(scores[rewards == 1].mean() - scores.mean())


@pytest.mark.filterwarnings("error")
def test_a_group_without_episodes_or_with_a_mean_of_zero_has_none():
    assert advantages("maxrl", [], plain(1, -1), plain(0, -1)) == [[], [0, 0], [0, 0]]


def test_a_mean_below_one_is_enough():
    assert advantages("maxrl", plain(0.5, 0.1)) == [pytest.approx([0.2 / 0.3, -0.2 / 0.3])]
