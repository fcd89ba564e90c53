"""``apo_stcr``: the golden factors, and whom they touch."""

import numpy as np
import pytest
from credit import Said, advantages, episode, plain

from rstar2_env.trainers.advantages.apo_stcr import ApoStcr


@pytest.mark.parametrize(("over", "factor"), [(100, 1.001), (10_000, 1.095), (100_000, 1.632)])
def test_golden_factors(over, factor):
    group = plain(1, 1, 0, tokens=[5, 15, 10 + over])
    (values,) = advantages("apo_stcr:of=group_mean", group)
    assert values[:2] == pytest.approx([1 / 3, 1 / 3])
    assert values[2] / (-2 / 3) == pytest.approx(factor, abs=5e-4)


def test_a_short_wrong_episode_and_a_long_right_one_keep_theirs():
    (values,) = advantages("apo_stcr:of=group_mean,base=2", plain(1, 1, 0, 0, tokens=[10, 30, 15, 21]))
    assert values == pytest.approx([0.5, 0.5, -0.5, -0.5 * 1.5])


def test_without_a_right_episode_there_is_no_length_to_compare_with():
    group = [episode(Said(length, 0, reward), correct=False) for length, reward in ((5, 0.0), (500, 0.5), (9, 0.1))]
    assert advantages("apo_stcr:base=1.5", group) == advantages("group_norm", group)


def test_a_wrong_episode_with_a_positive_advantage_is_not_rewarded_for_its_length():
    group = [
        episode(Said(2, 0, 0.2), correct=True),
        episode(Said(90, 0, 0.9), correct=False),
        episode(Said(2, 0, 0.0), correct=False),
    ]
    assert advantages("apo_stcr:base=1.5", group) == advantages("group_norm", group)


def test_the_factor_is_at_most_2():
    (values,) = advantages("apo_stcr:of=group_mean,base=3", plain(1, 0, tokens=[1, 5000]))
    assert values == pytest.approx([0.5, -1.0])


def test_of_tokens_only_the_negative_ones_grow():
    class Signs:
        """1 on the first token of every episode, -1 on the others."""

        def __call__(self, groups, ranks):
            return [[np.where(np.arange(len(one.completion_ids)) == 0, 1.0, -1.0) for one in group] for group in groups]

    (values,) = advantages(ApoStcr(of=Signs(), base=2.0), plain(1, 0, tokens=[1, 3]))
    assert [list(value) for value in values] == [[1], [1, -1.75, -1.75]]


def test_a_long_right_episode_with_a_negative_advantage_keeps_it():
    """The reward need not follow the answer: a penalty for length may be part of it."""
    group = [episode(Said(length, 0, reward), correct=right) for length, reward, right in ((2, 1.0, 1), (9, 0.0, 1))]
    assert advantages("apo_stcr:of=group_mean,base=2", group) == [[0.5, -0.5]]


def test_of_tokens_those_of_zero_and_above_stay():
    class Several:
        def __call__(self, groups, ranks):
            return [[np.array([-1.0, 0.0, 0.5, 2.0]), np.zeros(1)] for _ in groups]

    (values,) = advantages(ApoStcr(of=Several(), base=2.0), [*plain(0, tokens=[4]), *plain(1, tokens=[1])])
    assert list(values[0]) == [-1.875, 0.0, 0.5, 2.0]


def test_a_number_stays_a_number():
    values = advantages("apo_stcr:of=group_mean,base=2", plain(1, 0, tokens=[1, 3]))
    assert values == [[0.5, -0.875]]
    assert not any(isinstance(value, np.ndarray) for value in values[0])


def test_a_positive_advantage_below_one_of_a_wrong_episode_stays():
    group = [episode(Said(length, 0, reward), correct=right) for length, reward, right in ((1, 0, 1), (9, 0.5, 0))]
    assert advantages("apo_stcr:of=group_mean,base=2", group) == [[-0.25, 0.25]]
