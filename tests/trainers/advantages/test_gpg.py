"""``gpg``: groups without a difference do not shrink the gradient of the others."""

import numpy as np
import pytest
from credit import advantages, plain

from rstar2_env.testing.training.processes import in_processes

ONE_RIGHT, NONE_RIGHT = plain(1, 0, 0, 0), plain(0, 0, 0, 0)


def test_golden_numbers_of_the_paper_and_of_verl():
    assert advantages("gpg", ONE_RIGHT, NONE_RIGHT) == [pytest.approx([1.5, -0.5, -0.5, -0.5]), [0.0] * 4]
    found = advantages("gpg:count=nonzero", ONE_RIGHT, NONE_RIGHT)
    assert found == [pytest.approx([6, -2, -2, -2]), [0.0] * 4]


def test_the_mean_over_the_batch_is_that_over_the_mixed_groups():
    rng = np.random.default_rng(2)
    scores = rng.normal(size=12)
    mixed, right = plain(1, 1, 0, 1), plain(1, 1, 1, 1)
    values = np.concatenate(advantages("gpg", mixed, right, NONE_RIGHT))
    alone = np.array(advantages("group_mean", mixed)[0])
    assert np.mean(values * scores) == pytest.approx(np.mean(alone * scores[:4]))


def test_a_batch_without_a_difference_gives_zeros():
    assert advantages("gpg", NONE_RIGHT, plain(0.1, 0.1, 0.1)) == [[0.0] * 4, [0.0] * 3]
    assert advantages("gpg") == []


@pytest.mark.parametrize("count", ["mixed", "nonzero"])
def test_two_processes_count_together(count):
    groups = [ONE_RIGHT, NONE_RIGHT, plain(1, 0)]
    shares = groups[:1], groups[1:]
    apart = in_processes(2, lambda ranks: advantages(f"gpg:count={count}", *shares[ranks.rank], ranks=ranks))
    assert [*apart[0], *apart[1]] == advantages(f"gpg:count={count}", *groups)


def test_a_group_with_an_episode_at_its_mean_counts():
    values = advantages("gpg", plain(0, 0.5, 1), plain(1, 1, 1))
    assert values[0] == pytest.approx([-1, 0, 1])
    assert values[1] == [0, 0, 0]


def test_one_reward_may_be_all_that_counts():
    assert advantages("gpg:count=nonzero", plain(1, 0, 0, 0)) == [pytest.approx([3, -1, -1, -1])]


def test_a_batch_without_a_gradient_stays_without():
    assert advantages("gpg", plain(1, 1)) == advantages("gpg:count=nonzero", plain(0, 0)) == [[0, 0]]
