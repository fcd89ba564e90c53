"""Gains in the probability of the gold answer as rewards of turns."""

import itertools

import numpy as np
import pytest

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.turn import Turn
from rstar2_env.trainers.advantages.group import GroupNorm
from rstar2_env.trainers.advantages.igpo import Igpo
from rstar2_env.trainers.ranks import ONE


def episode(reward, before):
    """One with a turn of two tokens and one of a tool's for each probability, of the answer before the turn."""
    turns = [Turn(3 * at, 3 * at + 2) for at in range(len(before))]
    made = Episode(reward=reward, steps=turns, completion_ids=[5] * 3 * len(before), mask=[1, 1, 0] * len(before))
    made.measured["answer"] = list(before)
    return made


def earned(*group, **options):
    return [Igpo(**options)._turns(one).tolist() for one in group]


def on_turns(*group, **options):
    """The advantage of each turn."""
    values = Igpo(**options)([list(group)], ONE)[0]
    for value, one in zip(values, group, strict=True):
        assert value[[turn.start for turn in one.steps]].tolist() == value[[t.start + 1 for t in one.steps]].tolist()
        assert not value[np.asarray(one.mask) == 0].any()
    return [value[[turn.start for turn in one.steps]] for value, one in zip(values, group, strict=True)]


def test_a_turn_earns_what_it_adds_to_the_probability_and_the_last_the_reward():
    (turns,) = earned(episode(1.0, [0.1, 0.3, 0.25, 0.6]))
    assert turns == pytest.approx([0.2, -0.05, 0.35, 1.0])
    assert sum(turns[:-1]) == pytest.approx(0.6 - 0.1)


def test_all_turns_of_the_group_are_normalised_together_and_summed_to_the_end():
    group = episode(1.0, [0.1, 0.3, 0.25, 0.6]), episode(0.0, [0.1, 0.2])
    together = np.array([0.2, -0.05, 0.35, 1.0, 0.1, 0.0])
    normed = (together - together.mean()) / together.std(ddof=1)
    first, second = on_turns(*group, baseline="group", eps=0.0)
    assert first == pytest.approx(normed[:4][::-1].cumsum()[::-1])
    assert second == pytest.approx(normed[4:][::-1].cumsum()[::-1])


def test_later_turns_are_discounted():
    group = episode(1.0, [0.1, 0.3]), episode(0.0, [0.1])
    together = np.array([0.2, 1.0, 0.0])
    normed = (together - together.mean()) / together.std(ddof=1)
    found = on_turns(*group, gamma=0.5, baseline="group", eps=0.0)[0]
    assert found == pytest.approx([normed[0] + 0.5 * normed[1], normed[1]])


def test_a_turn_is_compared_with_the_same_turn_of_the_others():
    group = episode(1.0, [0.1, 0.3]), episode(0.0, [0.1]), episode(0.5, [0.2, 0.1])
    returns = np.array([0.2 + 0.5, 1.0, 0.0, -0.1 + 0.25, 0.5])
    spread = returns.std(ddof=1)
    first, second, third = on_turns(*group, gamma=0.5, eps=0.0)
    assert first * spread == pytest.approx([0.7 - (0.0 + 0.15) / 2, 1.0 - 0.5])
    assert second * spread == pytest.approx([0.0 - (0.7 + 0.15) / 2])
    assert third * spread == pytest.approx([0.15 - (0.7 + 0.0) / 2, 0.5 - 1.0])
    unscaled = on_turns(*group, gamma=0.5, normalize=False)
    assert unscaled[0] == pytest.approx(first * spread)


@pytest.mark.parametrize(("baseline", "gradient"), [("turn", 2.75), ("group", 0.0)])
def test_the_gradient_is_unbiased_where_the_policy_chooses_the_number_of_turns(baseline, gradient):
    """Each of at most four turns earns 1, and the policy goes on with probability p = 1/2: J = 1 + p + p^2 + p^3."""
    lengths = {1: 1 / 2, 2: 1 / 4, 3: 1 / 8, 4: 1 / 8}
    found = 0.0
    for chosen in itertools.product(lengths, repeat=2):
        group = [episode(1.0, range(length)) for length in chosen]
        for length, values in zip(chosen, on_turns(*group, baseline=baseline, normalize=False), strict=True):
            # d log(probability of the choice) / dp; the fourth turn has no choice.
            choices = [2.0 if turn < length - 1 else -2.0 for turn in range(length)][:3]
            share = lengths[chosen[0]] * lengths[chosen[1]] / 2
            found += share * sum(value * choice for value, choice in zip(values, choices, strict=False))
    assert found == pytest.approx(gradient)


def test_credit_flows_back_over_what_a_tool_wrote():
    """The authors' code multiplies the running sum by the mask, so the first turn gets nothing of the last."""
    good, bad = on_turns(episode(1.0, [0.5, 0.5, 0.5]), episode(0.0, [0.5, 0.5, 0.5]))
    assert good[0] > bad[0]
    assert good[0] - bad[0] == pytest.approx(good[2] - bad[2])


def test_where_the_probability_never_moves_only_the_reward_tells_episodes_apart():
    rewards = (1.0, 0.0, 0.0, 1.0)
    alone = on_turns(*(episode(reward, [0.4]) for reward in rewards), baseline="group", eps=1e-4)
    plain = GroupNorm(eps=1e-4)([[episode(reward, [0.4]) for reward in rewards]], ONE)[0]
    assert [float(own[0]) for own in alone] == pytest.approx(plain)


def test_gains_may_weigh_less_than_the_reward():
    assert earned(episode(1.0, [0.1, 0.3]), weight=0.5) == [pytest.approx([0.1, 1.0])]


def test_a_group_in_which_nothing_differs_teaches_nothing():
    found = on_turns(episode(0.0, [0.4, 0.4]), episode(0.0, [0.4, 0.4, 0.4]))
    assert not any(own.any() for own in found)


def test_without_measured_probabilities_it_says_what_is_missing():
    with pytest.raises(ConfigurationError, match="answer"):
        Igpo()([[Episode(steps=[Turn(0, 1)], completion_ids=[1], mask=[1])] * 2], ONE)


@pytest.mark.parametrize("baseline", ["turn", "group"])
def test_turns_that_earn_the_same_have_no_advantage_even_without_others_to_compare(baseline):
    """Every turn earns 1/2 or, to the end, 1: whatever the baseline, nothing tells the turns from one another."""
    first, second = {
        "turn": (episode(1.0, [0.25, 0.25]), episode(1.0, [0.25])),
        "group": (episode(0.5, [0.25, 0.75]), episode(0.5, [0.25])),
    }[baseline]
    for eps in (0.0, 1e-6):
        assert [own.tolist() for own in on_turns(first, second, baseline=baseline, eps=eps)] == [[0, 0], [0]]


def test_a_turn_at_the_mean_leaves_the_others_their_advantage():
    group = [episode(reward, [0.5]) for reward in (0.0, 1.0, 2.0)]
    for baseline, values in (("turn", [-1.5, 0.0, 1.5]), ("group", [-1.0, 0.0, 1.0])):
        assert np.concatenate(on_turns(*group, baseline=baseline, eps=0.0)) == pytest.approx(values)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("baseline", ["turn", "group"])
def test_an_episode_without_turns_is_no_part_of_the_comparison(baseline):
    group = [episode(1.0, [0.5]), episode(0.0, [0.5])]
    alone = on_turns(*group, baseline=baseline)
    assert [own.tolist() for own in on_turns(*group, episode(7.0, []), baseline=baseline)][:2] == [
        own.tolist() for own in alone
    ]
    assert Igpo(baseline=baseline)([[]], ONE) == [[]]
