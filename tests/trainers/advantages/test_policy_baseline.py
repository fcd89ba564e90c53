"""``policy_baseline``: the mean of a group is that of the policy's own episodes."""

import pytest

from rstar2_env.core.episode import Episode
from rstar2_env.trainers.advantages.group import GroupMean
from rstar2_env.trainers.advantages.policy_baseline import PolicyBaseline
from rstar2_env.trainers.ranks import ONE


def group(rewards, experts=0):
    made = [Episode(reward=reward) for reward in rewards]
    for episode in made[len(made) - experts :]:
        episode.source = "expert"
    return made


def test_an_experts_solution_is_compared_with_the_policys_episodes_and_not_in_their_mean():
    assert PolicyBaseline()([group([1, 0, 0, 0, 1], experts=1)], ONE) == [[0.75, -0.25, -0.25, -0.25, 0.75]]
    assert PolicyBaseline()([group([0, 0, 0, 1], experts=1)], ONE) == [[0, 0, 0, 1]]
    assert GroupMean()([group([0, 0, 0, 1], experts=1)], ONE) == [[-0.25, -0.25, -0.25, 0.75]]


def test_without_others_it_is_group_mean_and_without_the_policys_own_all_count():
    own = group([1, 0, 0.5, 1])
    assert PolicyBaseline()([own], ONE) == [pytest.approx(values) for values in GroupMean()([own], ONE)]
    assert PolicyBaseline()([group([1, 0], experts=2)], ONE) == [[0.5, -0.5]]


def test_equal_rewards_are_exact_zeros():
    assert PolicyBaseline()([group([0.1, 0.1, 0.1, 0.1], experts=1)], ONE) == [[0, 0, 0, 0]]
