"""Claims about pass@k, avg@k, maj@k and the bootstrap over problems."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.evaluation.figures import statistics
from rstar2_env.evaluation.figures.statistics import (
    avg_at_k,
    bootstrap,
    bootstrap_shares,
    effective_trials,
    maj_at_k,
    paired,
    pass_at_k,
    wilson,
)


@pytest.mark.parametrize(
    ("n", "correct", "k", "expected"),
    [(10, 3, 1, 0.3), (10, 3, 5, 0.916667), (16, 1, 8, 0.5), (16, 8, 4, 0.9615), (16, 5, 4, 0.8187)],
)
def test_pass_at_k_has_the_golden_values_of_the_published_estimator(n, correct, k, expected):
    assert pass_at_k(n, correct, k) == pytest.approx(expected, abs=5e-5)


def test_pass_at_k_is_the_share_of_subsets_that_hold_a_right_sample():
    right = [True, True, False, False, False, False, False]
    for k in range(1, 8):
        subsets = list(itertools.combinations(right, k))
        assert pass_at_k(7, 2, k) == pytest.approx(sum(map(any, subsets)) / len(subsets))


def test_pass_at_k_is_unbiased():
    # With a chance of 0.2 a sample, four samples hold a right one with 1 - 0.8 ** 4 = 0.5904.
    drawn = np.random.default_rng(0).binomial(12, 0.2, size=20_000)
    assert np.mean([pass_at_k(12, int(correct), 4) for correct in drawn]) == pytest.approx(0.5904, abs=0.01)


def test_pass_at_k_of_a_thousand_samples_does_not_overflow():
    assert pass_at_k(5000, 1, 1024) == pytest.approx(1024 / 5000)


def test_avg_at_k_is_the_share_of_right_samples_for_every_k():
    assert [avg_at_k(8, 3, k) for k in (1, 4, 8)] == [0.375] * 3


@pytest.mark.parametrize("function", [pass_at_k, avg_at_k])
@pytest.mark.parametrize(("n", "correct", "k"), [(4, 1, 5), (4, 1, 0), (4, 5, 2), (4, -1, 2)])
def test_numbers_that_cannot_be_are_refused(function, n, correct, k):
    with pytest.raises(ConfigurationError, match="must be between"):
        function(n, correct, k)


def plain_majority(answers, correct, k):
    """The share of subsets whose vote is right, by counting them all."""
    names = ["gold" if good and answer is not None else answer for answer, good in zip(answers, correct, strict=True)]
    total = 0.0
    subsets = list(itertools.combinations(names, k))
    for subset in subsets:
        votes = Counter(name for name in subset if name is not None)
        most = max(votes.values(), default=0)
        first = [name for name, count in votes.items() if count == most]
        total += first.count("gold") / len(first) if first else 0.0
    return total / len(subsets)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(["a", "b", "c", "d", None]), min_size=1, max_size=8), st.data())
def test_maj_at_k_is_the_mean_vote_of_all_subsets(answers, data):
    right = data.draw(st.sampled_from(["a", "b", "nothing"]))
    correct = [answer == right for answer in answers]
    k = data.draw(st.integers(1, len(answers)))
    assert maj_at_k(answers, correct, k) == pytest.approx(plain_majority(answers, correct, k), abs=1e-9)


def test_maj_at_k_lets_right_answers_vote_together_however_they_are_written():
    assert maj_at_k(["1/2", "0.5", "3", "3"], [True, True, False, False], 4) == pytest.approx(0.5)


def test_maj_at_1_is_the_share_of_right_samples():
    assert maj_at_k(["a", "b", None, "a"], [True, False, False, True], 1) == pytest.approx(0.5)


def test_maj_at_k_of_many_samples_stays_a_probability():
    answers = ["gold"] * 300 + [f"wrong {i % 40}" for i in range(700)]
    value = maj_at_k(answers, [answer == "gold" for answer in answers], 512)
    assert 0.999 < value <= 1.0


def test_maj_at_k_refuses_verdicts_that_do_not_match():
    with pytest.raises(ConfigurationError, match="2 answers and 1 verdicts"):
        maj_at_k(["a", "b"], [True], 1)


def test_a_bootstrap_interval_covers_the_mean_as_often_as_it_says():
    rng = np.random.default_rng(1)
    covered = 0
    for trial in range(300):
        interval = bootstrap(rng.binomial(1, 0.4, size=60).astype(float), seed=trial, resamples=400)
        covered += interval.low <= 0.4 <= interval.high
    assert 0.90 <= covered / 300 <= 0.98


def test_a_bootstrap_is_the_same_for_the_same_seed_and_in_small_pieces(monkeypatch):
    values = np.random.default_rng(2).normal(size=50)
    whole = bootstrap(values, seed=3)
    assert bootstrap(values, seed=3) == whole
    assert bootstrap(values, seed=4) != whole
    monkeypatch.setattr(statistics, "_CELLS", 120)
    pieces = bootstrap(values, seed=3)
    assert (pieces.value, pieces.low, pieces.high) == pytest.approx((whole.value, whole.low, whole.high))


def test_a_problem_without_a_value_is_left_out():
    assert bootstrap(np.array([1.0, np.nan, 0.0, 1.0])).value == pytest.approx(2 / 3)


def test_one_problem_has_no_interval_and_none_has_no_value():
    one, none = bootstrap(np.array([0.5])), bootstrap(np.array([]))
    assert one.value == 0.5
    assert math.isnan(one.low)
    assert math.isnan(one.high)
    assert math.isnan(none.value)
    assert math.isnan(none.low)


def test_shares_are_of_sums_and_not_means_of_shares():
    over, under = np.array([[1.0], [0.0], [0.0]]), np.array([[1.0], [8.0], [0.0]])
    assert bootstrap_shares(over, under)[0].value == pytest.approx(1 / 9)


def test_shapes_and_levels_that_cannot_be_are_refused():
    with pytest.raises(ConfigurationError, match="shape"):
        bootstrap(np.zeros((2, 2)))
    with pytest.raises(ConfigurationError, match="shape"):
        paired(np.zeros(3), np.zeros(4))
    with pytest.raises(ConfigurationError, match="level"):
        bootstrap(np.zeros(3), level=95)
    with pytest.raises(ConfigurationError, match="resample"):
        bootstrap(np.zeros(3), resamples=0)


def test_the_paired_test_is_exact_for_few_problems():
    interval, p = paired(np.zeros(5), np.ones(5))
    # Of 32 combinations of signs, two are as extreme.
    assert (interval.value, p) == (1.0, 2 / 32)


def test_the_paired_test_says_one_where_no_problem_differs():
    assert paired(np.ones(4), np.ones(4))[1] == 1.0


def test_the_paired_test_finds_as_much_as_it_may_where_there_is_nothing():
    rng = np.random.default_rng(5)
    found = [paired(rng.normal(size=40), rng.normal(size=40), seed=i, resamples=200)[1] for i in range(300)]
    assert 0.02 <= np.mean(np.array(found) <= 0.05) <= 0.09


def test_the_paired_difference_is_b_minus_a_without_problems_that_miss_a_value():
    interval, _ = paired(np.array([0.0, 0.5, np.nan]), np.array([1.0, 0.5, 1.0]))
    assert interval.value == pytest.approx(0.5)


def test_the_interval_of_a_share_is_wilsons_and_never_empty():
    # 0 of n reaches up to z ** 2 / (n + z ** 2), with z = 1.95996.
    assert (wilson(0.0, 8).low, wilson(0.0, 8).high) == (0.0, pytest.approx(3.84146 / 11.84146, abs=1e-5))
    assert (wilson(1.0, 30).low, wilson(1.0, 30).high) == (pytest.approx(1 - 3.84146 / 33.84146, abs=1e-5), 1.0)
    # R: prop.test(15, 148, correct = FALSE) gives 0.06236 to 0.16045 (R. G. Newcombe 1998, 0.0624 to 0.1605).
    assert (wilson(15 / 148, 148).low, wilson(15 / 148, 148).high) == pytest.approx((0.0624, 0.1605), abs=1e-4)
    assert wilson(0.5, 10, level=0.5).high < wilson(0.5, 10).high
    for value, trials in ((-0.1, 3), (1.1, 3), (0.5, 0)):
        with pytest.raises(ConfigurationError, match="Expected a share from 0 to 1"):
            wilson(value, trials)


def test_a_clustered_share_is_worth_fewer_observations():
    assert effective_trials(0.5, 0.05, 1000, 50) == pytest.approx(100)
    assert effective_trials(0.5, 0.001, 1000, 50) == 1000
    assert effective_trials(0.5, 0.0, 1000, 50) == 1000
    assert effective_trials(0.0, 0.0, 1000, 50) == 50


def test_the_ends_of_an_interval_leave_equal_shares_out_on_both_sides():
    values = np.random.default_rng(0).normal(size=400)
    error = values.std() / math.sqrt(400)
    for level, reach in ((0.95, 1.96), (0.8, 1.2816)):
        found = bootstrap(values, level=level, resamples=8000)
        assert found.high - found.value == pytest.approx(reach * error, rel=0.08)
        assert found.value - found.low == pytest.approx(reach * error, rel=0.08)


def test_the_drawn_paired_test_agrees_with_the_exact_one():
    a, b = np.zeros(11), np.array([1.0, 1, 1, 1, 1, 1, 1, 1, -1, -1, 0.5])
    exact, drawn = (paired(a, b, resamples=resamples)[1] for resamples in (2048, 2047))
    assert exact == pytest.approx(drawn, abs=0.02)
    assert 0.05 < exact < 0.2


def test_wilsons_interval_needs_a_trial():
    with pytest.raises(ConfigurationError, match="at least one observation; got the share 0 of 0"):
        wilson(0, 0)
