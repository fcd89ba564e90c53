"""The baseline of least variance at each token: its weights, its places, its tail, and that its variance is least."""

import numpy as np
import pytest

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.trainers.advantages.optimal_token_baseline import OptimalTokenBaseline
from rstar2_env.trainers.ranks import ONE


def episode(reward, probabilities, squares, mask=None):
    """One whose tokens had these probabilities, with these sums over the vocabulary; both 0 off the mask."""
    mask = mask or [1] * len(probabilities)
    made = Episode(reward=reward, correct=reward > 0, mask=mask, completion_ids=[5] * len(mask))
    made.logprobs = [float(np.log(p)) if own else 0.0 for p, own in zip(probabilities, mask, strict=True)]
    made.measured["sum_squares"] = [float(s) for s in squares]
    return made


def values(*group, **options):
    return [np.asarray(own).tolist() for own in OptimalTokenBaseline(**options)([list(group)], ONE)[0]]


def test_the_baseline_is_weighted_by_the_uncertain_tokens_up_to_there():
    """W is 1 - 2 pi + sum p^2, added up: .5, 1 of the right one, .25, .5 of the wrong one."""
    right = episode(1.0, [0.5, 0.5], [0.5, 0.5])
    wrong = episode(0.0, [0.75, 0.75], [0.75, 0.75])
    assert values(right, wrong) == [pytest.approx([1 - 2 / 3] * 2), pytest.approx([-2 / 3] * 2)]


def test_the_weights_add_up_along_the_way():
    """W: .5 then .75 of the right one; .125 then 1.125 of the wrong one."""
    right = episode(1.0, [0.5, 0.5], [0.5, 0.25])
    wrong = episode(0.0, [0.75, 0.25], [0.625, 0.5])
    first, second = 0.5 / 0.625, 0.75 / 1.875
    assert values(right, wrong) == [pytest.approx([1 - first, 1 - second]), pytest.approx([-first, -second])]


def test_beyond_the_second_longest_the_whole_reward_trains():
    long = episode(1.0, [0.5] * 3, [0.5] * 3)
    short = episode(0.0, [0.5], [0.5])
    assert values(long, short) == [pytest.approx([0.5, 1.0, 1.0]), pytest.approx([-0.5])]


def test_without_that_the_tail_of_the_longest_learns_nothing():
    long = episode(1.0, [0.5] * 3, [0.5] * 3)
    short = episode(0.0, [0.5], [0.5])
    assert values(long, short, zero_tail=False) == [pytest.approx([0.5, 0.0, 0.0]), pytest.approx([-0.5])]


TOOLED = (1.0, [0.5, 1, 1, 0.5], [0.5, 0, 0, 0.5], [1, 0, 0, 1])


def test_what_a_tool_wrote_takes_no_place():
    """The second token of the policy's is compared with the other's second, whatever stands between."""
    found = values(episode(*TOOLED), episode(0.0, [0.5, 0.5], [0.5, 0.5]))
    assert found == [pytest.approx([0.5, 0, 0, 0.5]), pytest.approx([-0.5, -0.5])]


def test_on_request_every_token_takes_a_place():
    found = values(episode(*TOOLED), episode(0.0, [0.5, 0.5], [0.5, 0.5]), count="all", zero_tail=False)
    assert found == [pytest.approx([0.5, 0, 0, 0.0]), pytest.approx([-0.5, 0.0])]


def test_where_every_token_so_far_was_certain_the_baseline_is_the_mean():
    certain = episode(1.0, [1.0], [1.0]), episode(0.0, [1.0], [1.0])
    assert values(*certain) == [[0.5], [-0.5]]


def test_a_weight_is_never_negative_though_engine_and_trainer_differ():
    """1 - 2 pi + sum p^2 is at least (1 - pi)^2, unless the engine computes another pi than the trainer."""
    odd, plain = episode(1.0, [0.9], [0.7]), episode(0.0, [0.5], [0.5])
    assert values(odd, plain) == [[1.0], [0.0]]


def test_equal_rewards_train_nothing_in_the_tail_either():
    assert values(episode(0.1, [0.5] * 3, [0.5] * 3), episode(0.1, [0.5], [0.5])) == [0.0, 0.0]


def test_without_a_measured_policy_it_says_what_is_missing():
    bare = episode(1.0, [0.5], [0.5])
    bare.measured.clear()
    with pytest.raises(ConfigurationError, match="sum_squares"):
        values(bare, episode(0.0, [0.5], [0.5]))


def test_no_constant_baseline_has_less_variance_in_the_gradient():
    """One token whose choice earns the reward, as often in the group as its probability says."""
    chances, reward = np.array([0.7, 0.2, 0.1]), np.array([1.0, 0.0, 0.5])
    group = [
        episode(reward[choice], [chances[choice]], [float(chances @ chances)])
        for choice in np.repeat([0, 1, 2], [7, 2, 1])
    ]
    found = reward[0] - values(*group)[0][0]

    def variance(baseline):
        gradients = (np.eye(3) - chances) * (reward - baseline)[:, None]
        return float(chances @ np.square(gradients - chances @ gradients).sum(1))

    least = min(variance(one) for one in np.linspace(-1, 2, 3001))
    assert variance(found) == pytest.approx(least, rel=1e-4)
    assert variance(chances @ reward) > 1.2 * least


def test_a_group_with_an_episode_at_its_mean_is_compared():
    group = [episode(reward, [0.5], [0.5]) for reward in (0.0, 0.5, 1.0)]
    assert values(*group, zero_tail=False) == [pytest.approx([-0.5]), pytest.approx([0.0]), pytest.approx([0.5])]


def test_an_episode_without_a_token_of_the_policy_leaves_the_others_their_rewards():
    """It is the second longest, of length 0, so that every token of the other is beyond it."""
    none = episode(0.0, [1.0], [0.0], mask=[0])
    assert values(episode(1.0, [0.5, 0.5], [0.5, 0.5]), none) == [[1.0, 1.0], [0.0]]
    first, second = values(episode(1.0, [0.5, 0.5], [0.5, 0.5]), none, zero_tail=False)
    assert (first, second) == (pytest.approx([0.0, 0.0]), [0.0])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("count", ["policy", "all"])
def test_certain_tokens_are_compared_with_the_plain_mean_of_those_that_are_there(count):
    """A token of probability 1 has no uncertainty; the second has a tool's token before its last."""
    long, short = episode(1.0, [1.0] * 3, [1.0] * 3, mask=[1, 0, 1]), episode(0.0, [1.0], [1.0])
    first, second = values(long, short, count=count, zero_tail=False)
    assert first == pytest.approx([0.5, 0.0, 0.0])
    assert second == pytest.approx([-0.5])


def test_the_baseline_may_be_that_of_the_other_episodes():
    long, short = episode(1.0, [0.5] * 3, [0.5] * 3), episode(0.5, [0.5], [0.5])
    third = episode(0.0, [0.75, 0.75], [0.75, 0.75])
    first, second, last = values(long, short, third, baseline="others")
    assert first == pytest.approx([1 - 0.5 * 0.5 / 0.75, 1, 1])
    assert second == pytest.approx([0.5 - 0.5 / 0.75])
    assert last == pytest.approx([-0.75, -1])


def test_a_baseline_of_the_others_needs_the_zero_tail():
    with pytest.raises(ConfigurationError, match="baseline=others and zero_tail=false exclude each other"):
        OptimalTokenBaseline(baseline="others", zero_tail=False)


def test_rewards_that_equal_the_baseline_up_to_rounding_give_exact_zeros():
    """The weighted mean of two rewards of 0.1 is 0.1 only up to rounding."""
    group = [episode(0.1, [p], [p**2 + (1 - p) ** 2]) for p in (0.5, 0.7, 0.3)]
    assert values(*group, baseline="others") == [[0.0]] * 3
    long = episode(0.1, [0.5] * 2, [0.5] * 2)
    assert values(long, *group, baseline="others")[0] == [0.0, 0.1], "no other episode has a second token"
