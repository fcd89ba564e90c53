"""Advantages of tokens: rewards of turns that add up, and normalization over tokens; rounding
errors do not count as differences."""

import numpy as np
import pytest
from credit import Said, episode, plain

from rstar2_env.rewards.scoring import TURN_RETURNS
from rstar2_env.testing.training.processes import in_processes
from rstar2_env.trainers.advantages.tokens import normalized, on_tokens, on_turns, scaled, turn_rewards, weighed
from rstar2_env.trainers.ranks import ONE


class TestRewardsOfTurns:
    def test_what_the_turns_did_not_earn_belongs_to_the_last(self):
        assert list(turn_rewards(episode(Said(reward=1), Said(reward=2), reward=7))) == [1, 6]
        assert list(turn_rewards(episode(Said(reward=1), Said(reward=2), reward=-7))) == [1, -8]

    def test_the_parts_of_the_return_that_are_paid_come_first(self):
        one = episode(Said(reward=1), Said(reward=2), reward=4)
        one.measured[TURN_RETURNS] = [0.5, 1.0]
        assert list(turn_rewards(one)) == [0.5, 3.5]

    def test_an_episode_without_turns_has_none(self):
        assert turn_rewards(episode(reward=1.0)).shape == (0,)

    @pytest.mark.parametrize(
        ("turns", "reward", "last"),
        [
            ([1e9 - 1], 1e9, 1e9 - 1),  # the rest is 1, a billionth of the reward
            ([1e9 - 2], 1e9, 1e9),
            ([1e9, -1e9], 0.5, -1e9),  # less than a billionth of a turn's reward
            ([-1e9, 5e8, 5e8], 0.75, 5e8),
            ([1e8] * 10, 1e9 + 0.5, 1e8),  # less than a billionth of the reward
            ([-1e8] * 10, -1e9 - 0.5, -1e8),
            ([0.0, 0.0], -0.5, -0.5),
        ],
    )
    def test_a_rest_of_rounding_is_not_credited(self, turns, reward, last):
        found = turn_rewards(episode(*(Said(reward=one) for one in turns), reward=reward))
        assert list(found) == [*turns[:-1], last]


def test_numbers_are_put_on_tokens_or_on_turns():
    one = episode(Said(2, 1), Said(1, 2))
    assert list(on_tokens(3.0, one)) == [3] * 6
    assert list(on_turns([1.0, 2.0], one)) == [1, 1, 0, 2, 0, 0]
    values = np.arange(6.0)
    assert list(on_tokens(values, one)) == list(values)
    assert on_tokens(values, one) is not values


def test_the_weights_of_values_are_numbers_of_policy_tokens():
    one = episode(Said(2, 1), Said(1, 2))
    assert [list(own) for own in weighed(2.0, one)] == [[2], [3]]
    assert [list(own) for own in weighed(np.arange(6.0), one)] == [[0, 1, 3], [1, 1, 1]]


class TestScaled:
    def test_it_subtracts_the_mean_and_divides_by_deviation_and_eps(self):
        assert scaled(4.0, 1.0, 1.0, 0.5) == 2.0
        assert list(scaled(np.array([4.0, -2.0]), 1.0, 1.0, 0.5)) == [2, -2]

    @pytest.mark.parametrize("sign", [1, -1])
    def test_a_deviation_of_a_billionth_of_the_mean_is_rounding(self, sign):
        assert scaled(1e9 + 7, sign * 1e9, 1.0, 0.0) == 0
        assert list(scaled(np.array([5.0, 6.0]), sign * 1e9, 1.0, 0.0)) == [0, 0]
        assert scaled(sign * 1e9 + 4, sign * 1e9, 2.0, 0.0) == 2
        assert scaled(3.0, 0.0, 0.0, 0.0) == 0
        assert scaled(3.0, 0.0, 1e-12, 0.0) == pytest.approx(3e12)


class TestNormalized:
    def test_it_is_over_all_tokens_of_the_policy(self):
        group = [episode(Said(1, 5)), episode(Said(2, 0), Said(1, 0))]
        (values,) = normalized([group], [[1.0, np.array([0.0, 2.0, 5.0])]], ONE, 0.0)
        tokens = np.array([1.0, 0.0, 2.0, 5.0])
        normed = (tokens - tokens.mean()) / tokens.std(ddof=1)
        assert values[0] == pytest.approx(normed[0])
        assert list(values[1]) == pytest.approx(list(normed[1:]))

    def test_eps_is_added(self):
        assert normalized([plain(1, 0, tokens=[1, 1])], [[1.0, 0.0]], ONE, 1.0) == [
            [pytest.approx(0.5 / (0.5**0.5 + 1)), pytest.approx(-0.5 / (0.5**0.5 + 1))]
        ]

    @pytest.mark.filterwarnings("error")
    def test_one_token_or_none_has_nothing_to_compare_with(self):
        assert normalized([], [], ONE, 0.0) == []
        assert normalized([[episode(Said(0, 2))]], [[3.0]], ONE, 0.0) == [[0.0]]
        assert normalized([plain(1, tokens=[1])], [[3.0]], ONE, 0.0) == [[0.0]]

    def test_processes_are_taken_together(self):
        groups = [[plain(1, tokens=[1])], [plain(0, 0, tokens=[1, 1])]]
        values = [[[3.0]], [[0.0, 0.0]]]
        found = in_processes(2, lambda ranks: normalized(groups[ranks.rank], values[ranks.rank], ranks, 0.0))
        assert found == [[[pytest.approx(2 / 3**0.5)]], [[pytest.approx(-1 / 3**0.5)] * 2]]
