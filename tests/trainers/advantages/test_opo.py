"""``opo``: the baseline weighs long episodes more."""

import numpy as np
import pytest
from credit import Said, advantages, episode, plain


def test_golden_number():
    group = plain(1, 0, 0, 1, tokens=[2, 4, 6, 8])
    assert advantages("opo", group) == [pytest.approx([0.5, -0.5, -0.5, 0.5])]
    group = plain(1, 0, 0, 1, tokens=[8, 4, 2, 6])
    assert advantages("opo", group) == [pytest.approx([0.3, -0.7, -0.7, 0.3])]


def test_only_the_tokens_of_the_policy_count():
    group = [episode(Said(2, shown=90), Said(1, 0, 1.0)), episode(Said(1, 0, 0.0))]
    assert advantages("opo", group) == [pytest.approx([0.25, -0.75])]


@pytest.mark.parametrize("reward", [0.1, 1 / 3, 1.0])
def test_equal_rewards_give_exact_zeros_whatever_the_lengths(reward):
    assert advantages("opo", plain(reward, reward, reward, tokens=[3, 7, 11])) == [[0.0] * 3]


def test_the_baseline_has_the_least_variance_where_the_squared_score_grows_with_the_length():
    rng = np.random.default_rng(1)
    lengths = rng.integers(1, 50, size=40_000)
    rewards = (rng.random(40_000) < 0.2 + 0.015 * lengths).astype(float)
    scores = rng.normal(size=40_000) * np.sqrt(lengths)
    baseline = (rewards * lengths).sum() / lengths.sum()
    at = [np.var((rewards - b) * scores) for b in (baseline, rewards.mean(), baseline + 0.15, baseline - 0.15)]
    assert min(at) == at[0]
    sample = slice(0, 12)
    group = plain(*rewards[sample], tokens=list(lengths[sample]))
    own = (rewards[sample] * lengths[sample]).sum() / lengths[sample].sum()
    assert advantages("opo", group) == [pytest.approx(list(rewards[sample] - own))]


def test_without_a_token_of_the_policy_it_is_the_mean():
    none = [episode(Said(0, 2), reward=value) for value in (1.0, 0.0)]
    assert advantages("opo", none) == [[0.5, -0.5]]
    assert advantages("opo", [none[0], *plain(1, 0, tokens=[1, 3])]) == [pytest.approx([0.75, 0.75, -0.25])]


def test_the_mean_may_be_that_of_the_other_episodes():
    group = plain(1, 0, 0, tokens=[2, 4, 6])
    assert advantages("opo:baseline=others", group) == [pytest.approx([1, -2 / 8, -2 / 6])]


def test_without_a_token_of_the_others_the_mean_of_the_group_is_subtracted():
    """The first episode is compared with the second, whose only other episode has no token of the policy."""
    group = [episode(Said(0, 2), reward=0.0), *plain(1, tokens=[3])]
    assert advantages("opo:baseline=others", group) == [[-1, 0.5]]
