"""``gigpo``: the golden example, what an anchor is, and what is left of it without the turns."""

import difflib

import numpy as np
import pytest
from credit import Said, advantages, episode, plain

from rstar2_env.core.errors import ConfigurationError, UnknownNameError
from rstar2_env.core.options.parts import make_part
from rstar2_env.trainers.advantages.base import ADVANTAGES
from rstar2_env.trainers.advantages.gigpo import Gigpo, _alike, _same


def path(*states, rewards, statuses=()):
    """An episode through these states, with one token of the policy and one of the environment a turn."""
    calls = [*statuses, *[()] * (len(states) - len(statuses))]
    return episode(*(Said(1, 1, reward, own, seen) for seen, reward, own in zip(states, rewards, calls, strict=True)))


A, B = path("s0", "s1", "s2", rewards=[0, 0, 10]), path("s0", "s1", "s3", rewards=[0, 0, 0])


def of_turns(part, *group):
    return [list(np.asarray(value)[0::2]) for value in advantages(part, group)[0]]


def test_the_golden_example():
    one, other = of_turns("gigpo", A, B)
    assert one == pytest.approx([9.5125, 9.75, 5])
    assert other == pytest.approx([-9.5125, -9.75, -5])


def test_the_golden_example_in_its_two_halves():
    whole, turns = of_turns("gigpo:omega=0.000001", A, B)[0], of_turns("gigpo:omega=2", A, B)[0]
    assert whole == pytest.approx([5, 5, 5], abs=1e-4)
    assert turns == pytest.approx([5 + 2 * 4.5125, 5 + 2 * 4.75, 5])


def test_without_turns_it_is_grpo():
    group = plain(1, 0, 0, 1)
    assert advantages("gigpo:omega=0", group) == advantages("group_mean", group)
    assert advantages("gigpo:omega=0,normalize=true", group) == advantages("group_norm", group)


def test_with_deviations_both_halves_are_divided():
    c = path("s0", rewards=[4])
    (value, *_) = of_turns("gigpo:normalize=true,eps=0", A, B, c)
    whole = (10 - 14 / 3) / np.std([10, 0, 4], ddof=1)
    returns = np.array([9.025, 0, 4])
    assert value[0] == pytest.approx(whole + (9.025 - returns.mean()) / returns.std(ddof=1))
    assert value[2] == pytest.approx(whole)


def test_over_turns_long_episodes_weigh_more_in_the_mean():
    short = path("s9", rewards=[2])
    one, other = of_turns("gigpo:over=turns", path("s7", "s8", "s6", rewards=[0, 0, 10]), short)
    assert one == pytest.approx([10 - 8] * 3)
    assert other == pytest.approx([2 - 8])


def test_anchors_never_span_groups():
    alone = advantages("gigpo", [A, B])
    together = advantages("gigpo", [A, B], [path("s0", rewards=[7]), path("s0", rewards=[-7])])
    for one, other in zip(alone[0], together[0], strict=True):
        assert (one == other).all()


def test_the_same_state_twice_in_one_episode_is_compared_with_itself():
    one = path("s0", "s0", rewards=[0, 1])
    other = path("s9", rewards=[0])
    assert of_turns("gigpo", one, other)[0] == pytest.approx([0.5 + (0.95 - 0.975), 0.5 + (1 - 0.975)])


def test_an_anchor_of_the_history_tells_ways_to_a_state_apart():
    one, other = path("s0", "left", "s1", rewards=[0, 0, 1]), path("s0", "right", "s1", rewards=[0, 0, 0])
    same = of_turns("gigpo", one, other)[0]
    apart = of_turns("gigpo:anchor=history", one, other)[0]
    assert same == pytest.approx([0.5 + 0.9025 / 2, 0.5, 1.0])
    assert apart == pytest.approx([0.5 + 0.9025 / 2, 0.5, 0.5])


def test_an_anchor_may_be_the_users_own(tmp_path):
    (tmp_path / "mine.py").write_text("def depth(episode, turn):\n    return str(turn)\n")
    written = f"gigpo:anchor={tmp_path}/mine.py:depth"
    assert of_turns(written, A, B)[0] == pytest.approx([9.5125, 9.75, 10])
    with pytest.raises(UnknownNameError, match="Known: history, observation"):
        make_part(ADVANTAGES, "gigpo:anchor=state")


def test_states_that_are_similar_enough_are_one():
    one = path("You stand in a small room with one door.", rewards=[1])
    other = path("You stand in a small room with two doors.", rewards=[0])
    apart, near = (of_turns(f"gigpo:similarity={bound}", one, other)[0] for bound in (1.0, 0.9))
    assert apart == pytest.approx([0.5])
    assert near == pytest.approx([1.0])
    assert of_turns("gigpo:similarity=0.99", one, other)[0] == pytest.approx([0.5])


def test_the_turn_with_a_call_that_did_not_run_earns_less():
    clean = path("s0", "s1", rewards=[0, 1])
    broken = path("s0", "s1", rewards=[0, 1], statuses=[("malformed",)])
    failing = path("s0", "s1", rewards=[0, 1], statuses=[("exception",)])
    values = of_turns("gigpo:gamma=1", clean, broken, failing)
    # Its return and its episode's reward: the mean of the rewards is that of 1, (0.9 + 1) / 2 and 1.
    mean = (1 + 0.95 + 1) / 3
    assert values[1] == pytest.approx([-0.2 / 3 + 0.9 - mean, 1 - mean])
    assert values[0] == values[2] == pytest.approx([0.1 / 3 + 1 - mean, 1 - mean])
    assert of_turns("gigpo:gamma=1,invalid=0", clean, broken, failing) == [[0, 0]] * 3


def test_a_penalty_is_not_shared_by_earlier_turns_and_reaches_a_state_that_nobody_else_saw():
    one, other = path("s0", "s1", rewards=[0, 1], statuses=[(), ("malformed",)]), path("s0", "s2", rewards=[0, 1])
    first, second = of_turns("gigpo:gamma=1,over=turns", one, other)
    mean = (1 + 0.9 + 1 + 1) / 4
    assert first == pytest.approx([1 - mean, 0.9 - mean])
    assert second == pytest.approx([1 - mean, 1 - mean])


def test_what_a_trainer_adds_to_the_reward_belongs_to_the_last_turn():
    one = path("s0", "s1", rewards=[0, 0])
    one.reward = 1.0
    assert of_turns("gigpo", one, path("s0", "s1", rewards=[0, 0]))[0] == pytest.approx([0.5 + 0.475, 1.0])


def test_a_group_without_episodes_has_no_advantages():
    assert advantages("gigpo", []) == [[]]


def test_the_anchor_may_be_a_function():
    assert of_turns(Gigpo(anchor=lambda episode, turn: str(turn)), A, B)[0] == pytest.approx([9.5125, 9.75, 10])


def test_the_environments_tokens_have_no_advantage_with_or_without_a_penalty():
    broken = path("s0", "s1", rewards=[0, 1], statuses=[("malformed",)])
    for group in ([A, B], [broken, path("s0", rewards=[3])]):
        for value in advantages("gigpo", group)[0]:
            assert (value[1::2] == 0).all()
            assert (value[0::2] != 0).any()


def test_omega_weighs_the_turns_also_beside_a_penalty():
    one, other = path("s0", rewards=[1], statuses=[("malformed",)]), path("s0", rewards=[0])
    # The episodes are worth 0.9 and 0, and so are the returns of their turns.
    assert of_turns("gigpo:omega=3", one, other) == [pytest.approx([0.45 + 3 * 0.45]), pytest.approx([-0.45 * 4])]


def test_an_episode_without_a_turn_counts_among_episodes_and_not_among_turns():
    none = episode(reward=1.0)
    group = [path("s0", rewards=[4]), none, path("s1", "s2", rewards=[0, 10])]
    for part, expected in (("gigpo:omega=0", [-1, -4, 5]), ("gigpo:omega=0,over=turns", [-4, -7, 2])):
        assert advantages(part, group)[0] == pytest.approx(expected)
    broken = path("s1", "s2", rewards=[0, 10], statuses=[("malformed",)])
    values = advantages("gigpo:omega=0,invalid=3", [path("s0", rewards=[4]), none, broken])[0]
    mean = (4 + 1 + (7 + 10) / 2) / 3
    assert values[1] == pytest.approx(1 - mean)
    assert list(values[2][0::2]) == pytest.approx([7 - mean, 10 - mean])


def test_a_state_with_a_turn_at_the_mean_is_compared():
    group = [path("s0", rewards=[reward]) for reward in (0, 1, 2)]
    assert np.concatenate(of_turns("gigpo", *group)) == pytest.approx([-2, 0, 2])


class TestSimilarStates:
    def test_they_join_the_first_in_the_order_of_their_texts(self):
        """So that neither the order of the episodes nor the seed of Python's hashes changes the groups."""
        states = []
        for one, other in ("ab", "cd", "ef", "gh", "ij", "kl"):
            states += [one * (4 - number) + other * number for number in (3, 0, 2, 1)]  # abbb, aaaa, aabb, aaab
        expected = [[first, first + 2] for first in range(len(states)) if first % 4 < 2]
        assert _same(states, 0.75) == expected

    def test_at_the_bound_they_are_alike(self):
        assert _alike("aaaa", "aaab", 0.75)
        assert not _alike("aaaa", "aaab", 0.76)

    def test_the_order_of_the_letters_counts(self):
        assert not _alike("abcdef", "fedcba", 0.9)

    def test_frequent_letters_of_long_texts_count_too(self):
        assert _alike("x" + "ab" * 150, "ab" * 150 + "y", 0.99)

    def test_equal_states_are_found_without_comparing_texts(self, monkeypatch):
        monkeypatch.setattr(difflib, "SequenceMatcher", None)
        assert _same(["b", "a", "b"], 1.0) == [[0, 2], [1]]


def test_the_means_may_be_those_of_the_other_episodes():
    one, other = of_turns("gigpo:baseline=others,gamma=1", A, B)
    # Both start in s0 and s1; no other episode has s2 or s3.
    assert one == pytest.approx([10 + 10, 10 + 10, 10 + 10])
    assert other == pytest.approx([-10 - 10, -10 - 10, -10 + 0])


def test_the_same_state_twice_in_one_episode_is_not_compared_with_itself():
    one, other = path("s0", "s0", rewards=[0, 1]), path("s0", rewards=[0.5])
    assert of_turns("gigpo:baseline=others,gamma=1", one, other)[0] == pytest.approx([0.5 + 0.5, 0.5 + 0.5])
    assert of_turns("gigpo:baseline=others,gamma=1", one, other)[1] == pytest.approx([-0.5 - 0.5])


def test_over_turns_the_others_are_weighed_by_their_turns():
    long, short, third = path("a", "b", rewards=[0, 4]), path("c", rewards=[1]), path("d", rewards=[2])
    found = of_turns("gigpo:baseline=others,over=turns,omega=0.000001", long, short, third)
    assert found[1] == pytest.approx([1 - (4 + 4 + 2) / 3], abs=1e-4)


def test_the_means_of_the_others_are_not_divided_by_a_deviation():
    with pytest.raises(ConfigurationError, match="baseline=others and normalize=true exclude each other"):
        Gigpo(baseline="others", normalize=True)
