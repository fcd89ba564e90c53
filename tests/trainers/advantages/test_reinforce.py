"""``reinforce``: the reward, or the reward minus the mean of the batch; rounding errors do not count as differences."""

import pytest
from credit import advantages, plain

from rstar2_env.testing.training.processes import in_processes


def test_without_a_baseline_it_is_the_reward():
    assert advantages("reinforce:baseline=none", plain(2, 2), plain(2)) == [[2, 2], [2]]
    assert advantages("reinforce:baseline=none", plain(0.5, -1)) == [[0.5, -1]]


def test_the_baseline_is_the_mean_of_all_episodes_of_all_processes():
    assert advantages("reinforce", plain(1, 0), plain(5)) == [[-1, -2], [3]]
    groups = [[plain(1, 0)], [plain(5)]]
    found = in_processes(2, lambda ranks: advantages("reinforce", *groups[ranks.rank], ranks=ranks))
    assert found == [[[-1, -2]], [[3]]]


@pytest.mark.parametrize("sign", [1, -1])
def test_equal_rewards_give_exact_zeros(sign):
    """The deviation of 1e9 and its neighbours is 1, a billionth of their mean."""
    assert advantages("reinforce", plain(*[sign * 0.1] * 3), plain(sign * 0.1)) == [[0, 0, 0], [0]]
    assert advantages("reinforce", plain(*(sign * (1e9 + by) for by in (-1, 0, 1)))) == [[0, 0, 0]]
    assert advantages("reinforce", plain(*(sign * (1e9 + by) for by in (-2, 0, 2)))) == [[-2 * sign, 0, 2 * sign]]


def test_a_process_without_episodes_takes_part():
    assert advantages("reinforce") == []
