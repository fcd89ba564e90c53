"""``pass_at_k``: golden numbers, every choice of others by hand, and the gradient that it estimates."""

from itertools import combinations
from math import comb

import numpy as np
import pytest
from credit import advantages, plain
from hypothesis import given
from hypothesis import strategies as st

from rstar2_env.core.errors import ConfigurationError

rewards = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, -1.0]), min_size=2, max_size=6)


def test_golden_numbers_of_verls_grpo_passk():
    group = plain(0.2, 0.9, 0.5, 0)
    assert advantages("pass_at_k", group) == [pytest.approx([0, 0.4, 0, 0])]
    assert advantages("pass_at_k:normalize=true,eps=1e-6", group) == [pytest.approx([0, 1.021505, 0, 0], abs=1e-6)]


def test_a_tie_for_the_best_leaves_nothing_to_gain():
    assert advantages("pass_at_k", plain(1, 1, 0, 0)) == [[0.0] * 4]


@given(values=rewards, k=st.integers(2, 8))
def test_it_is_the_mean_gain_over_all_choices_of_the_others(values, k):
    k = min(k, len(values))
    (found,) = advantages(f"pass_at_k:k={k}", plain(*values))
    for place, own in enumerate(values):
        rest = values[:place] + values[place + 1 :]
        gains = [max(own, *others) - max(others) for others in combinations(rest, k - 1)]
        assert found[place] == pytest.approx(np.mean(gains))


@given(values=rewards, k=st.integers(2, 5))
def test_against_all_choices_it_is_the_mean_best_with_it_less_the_mean_best(values, k):
    k = min(k, len(values))
    (found,) = advantages(f"pass_at_k:baseline=all,k={k}", plain(*values))
    every = [max(chosen) for chosen in combinations(values, k)]
    for place, own in enumerate(values):
        rest = values[:place] + values[place + 1 :]
        with_it = [max(own, *others) for others in combinations(rest, k - 1)]
        assert found[place] == pytest.approx(np.mean(with_it) - np.mean(every), abs=1e-9)


@pytest.mark.parametrize(("right", "count", "k"), [(1, 8, 4), (3, 8, 4), (2, 16, 8), (3, 5, 2)])
def test_of_right_and_wrong_it_is_the_analytical_advantage_of_pass_at_k_training(right, count, k):
    wrong = count - right
    rate = 1 - comb(wrong, k) / comb(count, k)
    spread = (rate * (1 - rate)) ** 0.5
    expected = [(1 - rate) / spread] * right
    expected += [(1 - rate - comb(wrong - 1, k - 1) / comb(count - 1, k - 1)) / spread] * wrong
    values = advantages(f"pass_at_k:baseline=all,normalize=true,eps=0,k={k}", plain(*[1] * right, *[0] * wrong))
    assert values == [pytest.approx(expected)]


def test_against_all_choices_of_the_whole_group_there_is_nothing_to_compare():
    with pytest.raises(ConfigurationError, match="baseline=all compares all choices of k"):
        advantages("pass_at_k:baseline=all", plain(1, 0))
    assert advantages("pass_at_k:baseline=all,k=4,normalize=true", plain(1, 0)) == [[0.0, 0.0]]


def test_where_every_choice_has_the_same_best_nothing_is_learned():
    for reward in (1, 0.1):
        group = plain(*[reward] * 4, 0)
        assert advantages("pass_at_k:baseline=all,k=2,normalize=true,eps=0", group) == [[0.0] * 5]


def test_two_of_a_group_gain_more_often_than_all_of_it():
    assert advantages("pass_at_k:k=2", plain(1, 1, 0, 0)) == [pytest.approx([2 / 3, 2 / 3, 0, 0])]


def test_it_estimates_the_gradient_of_the_chance_that_one_of_k_is_right():
    """For one Bernoulli parameter p, with the score d log pi / dp; d(1 - (1 - p)^k)/dp = k (1 - p)^(k - 1)."""
    rng, p, k, n = np.random.default_rng(3), 0.3, 3, 5
    total = 0.0
    for _ in range(6000):
        right = (rng.random(n) < p).astype(float)
        (values,) = advantages(f"pass_at_k:k={k}", plain(*right))
        scores = right / p - (1 - right) / (1 - p)
        total += k * np.mean(values * scores)
    assert total / 6000 == pytest.approx(k * (1 - p) ** (k - 1), rel=0.05)


@pytest.mark.parametrize("options", ["", ":k=2", ":k=2,baseline=all", ":normalize=true,eps=0"])
def test_rewards_that_differ_by_rounding_are_equal(options):
    assert [float(value) for value in advantages(f"pass_at_k{options}", plain(0.3, 0.1 + 0.2, 0.3))[0]] == [0, 0, 0]


@pytest.mark.parametrize("count", [0, 1])
def test_a_group_without_others_has_no_gain(count):
    assert list(advantages("pass_at_k", plain(*[1.0] * count))[0]) == [0.0] * count


def test_no_episode_has_an_advantage_if_every_choice_has_the_same_best():
    """Six of seven are best, so that every two have the same best, up to rounding; the mean may be of any sign or 0."""
    exact = "pass_at_k:k=2,baseline=all,normalize=true,eps=0"
    for best, other in ((1e9 / 7, 0.0), (0.0, -1.0), (-1e9 / 7, -1e9)):
        assert list(advantages(exact, plain(*[best] * 6, other))[0]) == [0.0] * 7


def test_eps_is_added_to_the_deviation_of_the_best_of_all_choices():
    """The best of two of 1, 0, 0 is 1, 1 or 0: mean 2/3, deviation sqrt(2)/3."""
    (values,) = advantages("pass_at_k:k=2,baseline=all,normalize=true,eps=1", plain(1, 0, 0))
    divisor = 2**0.5 / 3 + 1
    assert list(values) == pytest.approx([1 / 3 / divisor, -1 / 6 / divisor, -1 / 6 / divisor])
