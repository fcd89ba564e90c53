"""``reinforce_pp``: returns of tokens over turns, normalized over the tokens of all processes."""

import numpy as np
import pytest
from credit import EXACT, Said, advantages, episode, of_tokens, plain

from rstar2_env.core.options.parts import make_part
from rstar2_env.testing.training.processes import in_processes
from rstar2_env.trainers.advantages.base import ADVANTAGES


def returns(part, group):
    """The advantages of tokens, up to the scale and the shift of the normalization."""
    return of_tokens(advantages(part, group)[0], group)


def test_the_first_turn_is_credited_with_what_the_last_one_earns():
    """A return that is set to zero on the tool's tokens would leave the first turn with nothing."""
    right = episode(Said(2, shown=3), Said(1, shown=2), Said(2, 0, 1.0))
    wrong = episode(Said(2, shown=3), Said(3, 0, 0.0))
    first, second = returns("reinforce_pp", [right, wrong])
    assert (first == first[0]).all()
    assert first[0] == pytest.approx(-second[0])
    assert first[0] > 0.9


def test_tokens_of_the_environment_do_not_discount():
    near = episode(Said(1, shown=0), Said(1, 0, 1.0))
    far = episode(Said(1, shown=50), Said(1, 0, 1.0))
    other = episode(Said(2, 0, 0.0))
    one, two = (returns("reinforce_pp:gamma=0.5", [first, other])[0] for first in (near, far))
    assert one == pytest.approx(two)
    assert one[0] < one[1]


def test_each_token_of_the_policy_discounts_once():
    group = [episode(Said(2, 1, 1.0), Said(3, 0, 4.0)), episode(Said(1, 0, 0.0))]
    found = np.concatenate(returns(f"reinforce_pp:gamma=0.5,{EXACT}", group))
    raw = np.array([0.5 * (1 + 0.5 * 1.0), 1 + 0.5 * 1.0, 1.0, 2.0, 4.0, 0.0])
    assert found == pytest.approx((raw - raw.mean()) / raw.std(ddof=1))


def test_a_turn_is_not_credited_with_what_was_earned_before_it():
    group = [episode(Said(1, 1, 5.0), Said(1, 0, 1.0)), episode(Said(1, 0, 0.0))]
    raw = np.array([6.0, 1.0, 0.0])
    found = np.concatenate(returns(f"reinforce_pp:{EXACT}", group))
    assert found == pytest.approx((raw - raw.mean()) / raw.std(ddof=1))


def test_what_a_trainer_adds_to_the_reward_is_paid_at_the_end():
    group = [episode(Said(1, 1, 5.0), Said(1, 0, 0.0), reward=7.0), episode(Said(1, 0, 0.0))]
    raw = np.array([7.0, 2.0, 0.0])
    found = np.concatenate(returns(f"reinforce_pp:{EXACT}", group))
    assert found == pytest.approx((raw - raw.mean()) / raw.std(ddof=1))


def test_mean_and_deviation_are_those_of_tokens_and_not_of_episodes():
    long, short = plain(1.0, 0.0, tokens=[9, 1])
    (found,) = advantages(f"reinforce_pp:{EXACT}", [long, short])
    raw = np.array([1.0] * 9 + [0.0])
    assert found == pytest.approx([(value - raw.mean()) / raw.std(ddof=1) for value in (1.0, 0.0)])


def test_with_the_group_as_baseline_groups_are_compared_with_themselves():
    groups = [plain(1, 0, tokens=[1, 1]), plain(3, 3, tokens=[1, 1]), plain(9, 8, tokens=[1, 1])]
    values = np.concatenate(advantages(f"reinforce_pp:baseline=group,{EXACT}", *groups))
    assert values == pytest.approx(np.array([1, -1, 0, 0, 1, -1]) / np.sqrt(4 / 5))
    assert make_part(ADVANTAGES, "reinforce_pp:baseline=group").least == 2
    assert make_part(ADVANTAGES, "reinforce_pp").least == 1


def test_a_baseline_of_the_group_reaches_the_first_turn_too():
    group = [episode(Said(1, 1, 2.0), Said(1, 0, 4.0)), episode(Said(1, 0, 0.0))]
    raw = np.array([6.0, 4.0, 0.0]) - 3.0
    found = np.concatenate(returns(f"reinforce_pp:baseline=group,{EXACT}", group))
    assert found == pytest.approx((raw - raw.mean()) / raw.std(ddof=1))


@pytest.mark.parametrize("baseline", ["none", "group"])
def test_equal_rewards_give_exact_zeros(baseline):
    for reward in (0.1, 1 / 3, 0.7, 1.1):
        groups = [plain(*[reward] * 3, tokens=[2, 3, 5]), plain(*[reward] * 4, tokens=[7, 11, 13, 1])]
        values = advantages(f"reinforce_pp:baseline={baseline},eps=0", *groups)
        assert not any(np.any(value) for own in values for value in own)


@pytest.mark.parametrize("written", ["reinforce_pp", "reinforce_pp:baseline=group,gamma=0.9"])
def test_two_processes_normalize_together(written):
    groups = [[episode(Said(2, 1, 0.5), Said(3, 0, 1.0)), *plain(1, 0)], plain(0, 1, 1, tokens=[5, 1, 2])]
    apart = in_processes(2, lambda ranks: advantages(written, *groups[ranks.rank : ranks.rank + 1], ranks=ranks))
    for own, together in zip([*apart[0], *apart[1]], advantages(written, *groups), strict=True):
        for one, other in zip(own, together, strict=True):
            assert one == pytest.approx(other)


def test_a_turn_without_tokens_passes_its_return_on_without_a_discount():
    group = [episode(Said(1, 1), Said(0, 1, 2.0), Said(1, 0, 4.0)), episode(Said(1, 0, 0.0))]
    found = np.concatenate(returns(f"reinforce_pp:gamma=0.5,{EXACT}", group))
    raw = np.array([0.5 * (2 + 4), 4.0, 0.0])
    assert found == pytest.approx((raw - raw.mean()) / raw.std(ddof=1))


def test_an_episode_without_turns_has_its_reward():
    values = advantages("reinforce_pp:gamma=0.5", [episode(reward=1.0)], plain(1, 0))
    assert np.ndim(values[0][0]) == 0
