"""``arpo`` and ``tree_value``: what branches share, the mean over them, and the values of a tree."""

import math

import numpy as np
import pytest
from credit import Said, advantages, episode

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.trainers.advantages.prefixes import Prefix, shared_prefixes
from rstar2_env.trainers.advantages.tree_value import TreeValue, node_value

TURNS = (Said(2, 1), Said(2, 1), Said(2, 0))
"""Tokens 0, 1 | 3, 4 | 6, 7 are the policy's."""


def branch(at, mark, reward, parent=0):
    """An episode that leaves the first one at a token; ``mark`` tells its own tokens from those of others."""
    made = episode(*TURNS, reward=reward)
    made.completion_ids[at:] = [100 * mark + token for token in made.completion_ids[at:]]
    made.parent = (parent, at)
    return made


def tree(last=1.0):
    """A root episode, two branches after its first turn, and one within the second turn of the last of these."""
    third = branch(3, 2, 0.0)
    deep = branch(3, 2, last, parent=2)
    deep.completion_ids[4:] = [900 + token for token in range(4)]
    deep.parent = (2, 4)
    return [episode(*TURNS, reward=1.0), branch(3, 1, 0.0), third, deep]


class TestSharedPrefixes:
    def test_every_member_knows_what_it_shares_and_with_whom(self):
        everyone, pair = Prefix(3, (0, 1, 2, 3)), Prefix(4, (2, 3))
        assert shared_prefixes(tree()) == [[everyone], [everyone], [everyone, pair], [everyone, pair]]

    def test_episodes_that_happen_to_be_alike_share_nothing(self):
        assert shared_prefixes([episode(*TURNS), episode(*TURNS)]) == [[], []]

    def test_a_branch_at_the_start_shares_nothing(self):
        assert shared_prefixes([episode(*TURNS), branch(0, 1, 0.0)]) == [[], []]

    def test_prefixes_are_listed_from_the_shortest(self):
        first = episode(*TURNS)
        group = [first, *(branch(at, at, 0.0) for at in (5, 2, 7, 1, 6, 3, 4))]
        found = shared_prefixes(group)
        assert [prefix.length for prefix in found[0]] == [1, 2, 3, 4, 5, 6, 7]
        assert found[0][0].members == tuple(range(8))
        assert found[0][-1].members == (0, 3)

    def test_it_holds_for_what_a_selector_left_of_a_group(self):
        assert shared_prefixes(tree()[1:]) == [
            [Prefix(3, (0, 1, 2))],
            *[[Prefix(3, (0, 1, 2)), Prefix(4, (1, 2))]] * 2,
        ]
        assert shared_prefixes(tree()[3:]) == [[]]

    def test_an_episode_of_another_problem_or_a_short_one_is_no_member(self):
        short = episode(Said(2, 0))
        assert shared_prefixes([*tree(), short])[4] == []
        assert shared_prefixes([]) == []


class TestArpo:
    def test_shared_tokens_get_the_mean_and_the_others_their_own(self):
        values = advantages("arpo:of=group_mean,attribution=hard", tree(last=0.6))[0]
        assert [list(value) for value in values] == [
            pytest.approx([0, 0, 0, *[0.6] * 5]),
            pytest.approx([0, 0, 0, *[-0.4] * 5]),
            pytest.approx([0, 0, 0, -0.1, *[-0.4] * 4]),
            pytest.approx([0, 0, 0, -0.1, *[0.2] * 4]),
        ]

    def test_soft_leaves_to_each_episode_its_own(self):
        assert advantages("arpo", tree()) == advantages("group_norm", tree())

    def test_over_the_rows_that_share_a_token_both_add_up_to_the_same(self):
        group = [*tree(), episode(*TURNS, reward=0.0, ids=[77])]
        soft, hard = (advantages(f"arpo:attribution={how}", group)[0] for how in ("soft", "hard"))
        start = 0
        for prefix in shared_prefixes(group)[3]:
            sums = [
                sum(np.full(8, found[place])[start : prefix.length] for place in prefix.members)
                for found in (soft, hard)
            ]
            assert sums[0] == pytest.approx(sums[1])
            start = prefix.length
        assert start == 4

    def test_without_branches_they_are_the_same(self):
        group = [episode(*TURNS, reward=reward) for reward in (1.0, 0.0, 0.0)]
        assert advantages("arpo:attribution=hard", group) == advantages("arpo", group)

    def test_advantages_of_tokens_are_averaged_token_by_token(self):
        group = tree()
        below = advantages("gigpo:omega=2", group)[0]
        values = advantages("arpo:of=(gigpo:omega=2),attribution=hard", group)[0]
        assert values[0][:3] == pytest.approx(np.mean(below, axis=0)[:3])
        assert (values[0][3:] == below[0][3:]).all()


class TestTreeValue:
    def test_golden_backup_along_a_path_of_four_nodes(self):
        for depth, expected in enumerate([0.25, 0.5, 0.75, 1.0], start=1):
            backed = [(value, depth / 4) for value in (-1, -1, 1, -1)]
            assert node_value(backed) == expected

    @pytest.mark.parametrize("values", [[-1, -1, 1, -1], [1, -1, 1], [-1, -1], [1, 1, -1, 1, -1], [0, -1, 1]])
    def test_in_any_order_it_is_what_deepsearch_backs_up_one_by_one(self, values):
        rng = np.random.default_rng(0)
        weights = rng.uniform(0.1, 1, len(values))
        for _ in range(5):
            order = rng.permutation(len(values))
            kept = 0.0
            for place in order:
                gain = values[place] * weights[place]
                if kept * values[place] >= 0:
                    kept += gain
                elif gain > 0 > kept:
                    kept = gain
            assert node_value([(values[place], weights[place]) for place in order]) == pytest.approx(kept)

    def test_a_penalty_is_added_to_every_token_of_its_episode_and_to_the_mean(self):
        plain, punished = tree(), tree()
        for episode_, penalty in zip(punished, (0.0, -0.5, 0.0, -1.5), strict=True):
            episode_.rewards["overlong"] = penalty
        added = [0.0 + 2 / 4, -0.5 + 2 / 4, 0.0 + 2 / 4, -1.5 + 2 / 4]
        for searched in (False, True):
            if searched:  # values of a search tree, as the rollout deepsearch leaves them
                for episode_ in (*plain, *punished):
                    episode_.measured["node_value"] = np.full(len(episode_.completion_ids), 0.25)
            before, after = advantages("tree_value", plain)[0], advantages("tree_value:add=overlong", punished)[0]
            for values, others, more, own in zip(before, after, added, punished, strict=True):
                policy = np.flatnonzero(own.mask)
                assert others[policy] - values[policy] == pytest.approx(more)

    def test_a_component_that_the_reward_does_not_have_is_refused(self):
        with pytest.raises(ConfigurationError, match=r"advantage.add names \['overlogn'\], but the components .* are"):
            advantages("tree_value:add=overlogn", tree())

    def test_tokens_have_the_value_of_their_node_less_the_mean_of_the_leaves(self):
        values = advantages("tree_value", tree())[0]
        # Three turns and the root: depths 2, 3, 4 of 4; the last two have one more node, where the deep one leaves.
        shared = math.tanh((2 / 4 + 2 / 5) / 4)
        assert values[0][[0, 1]] == pytest.approx([shared] * 2)
        assert values[0][[3, 4, 6, 7]] == pytest.approx([math.tanh(3 / 4)] * 2 + [math.tanh(1)] * 2)
        assert values[1][[3, 4, 6, 7]] == pytest.approx([math.tanh(-3 / 4)] * 2 + [math.tanh(-1)] * 2)
        assert values[2][3] == values[3][3] == pytest.approx(math.tanh(3 / 5 / 2))
        assert values[2][[4, 6]] == pytest.approx([math.tanh(-4 / 5), math.tanh(-1)])

    def test_what_the_environment_says_after_the_last_turn_has_no_value(self):
        group = [episode(Said(1, 2), Said(1, 3), reward=reward) for reward in (1.0, 0.0)]
        for value in advantages("tree_value", group)[0]:
            assert list(value[-3:]) == [0, 0, 0]

    def test_the_mean_of_the_leaves_is_subtracted(self):
        group = [*tree(), episode(*TURNS, reward=0.0)]
        less = (2 - 3) / 5
        assert advantages("tree_value", group)[0][0][7] == pytest.approx(math.tanh(1) - less)

    def test_a_group_all_right_or_all_wrong_has_nothing_to_compare(self):
        for reward in (0.0, 1.0):
            group = [episode(*TURNS, reward=reward), branch(3, 1, reward)]
            assert advantages("tree_value", group) == [[0.0, 0.0]]

    def test_an_episode_that_did_not_end_may_count_less(self):
        right, cut = episode(Said(1, 0), reward=1.0), episode(Said(1, 0), reward=0.0)
        cut.end = "tokens"
        assert advantages("tree_value", [right, cut])[0][1] == pytest.approx([math.tanh(-1)])
        assert advantages("tree_value:incomplete=0", [right, cut])[0][1] == pytest.approx([0 - 0.5])
        cut.end = "answered"
        assert advantages("tree_value:incomplete=0", [right, cut])[0][1] == pytest.approx([math.tanh(-1)])

    def test_early_nodes_of_long_episodes_have_at_least_a_tenth_of_the_weight(self):
        right, wrong = episode(*[Said(1, 0)] * 20, reward=1.0), episode(Said(1, 0), reward=0.0)
        first, second = advantages("tree_value", [right, wrong])[0]
        assert first[0] == pytest.approx(math.tanh(0.1))  # instead of 2 / 21
        assert first[1] == pytest.approx(math.tanh(3 / 21))
        assert first[19] == pytest.approx(math.tanh(1))
        assert list(second) == pytest.approx([math.tanh(-1)])

    def test_the_values_of_a_search_tree_are_used_where_every_episode_has_them(self):
        group = [episode(Said(2, 0), reward=reward) for reward in (1.0, 0.0, 0.0)]
        for one, value in zip(group, (0.5, -0.25, 3.0), strict=True):
            one.measured["node_value"] = [value, 2 * value]
        values = advantages("tree_value", group)[0]
        mean = (1 - 1 - 1) / 3
        expected = [[math.tanh(value) - mean, math.tanh(2 * value) - mean] for value in (0.5, -0.25, 3.0)]
        assert [list(value) for value in values] == [pytest.approx(one) for one in expected]
        del group[2].measured["node_value"]
        assert list(advantages("tree_value", group)[0][0]) == pytest.approx([math.tanh(1) - mean] * 2)

    def test_the_value_of_a_node_weighs_the_values_and_a_value_of_zero_is_not_good(self):
        assert node_value([(0.0, 0.5), (-1.0, 0.5)]) == -0.5
        assert node_value([(2.0, 0.5), (-1.0, 1.0)]) == 1.0

    def test_added_components_change_the_values_and_their_mean_also_in_a_search_tree(self):
        group = [
            episode(Said(1, 0), reward=reward, rewards=rewards)
            for reward, rewards in (
                (1.0, {"a": 0.5, "b": 0.25}),
                (0.0, {"b": -1.0, "c": 9.0}),
            )
        ]
        mean = (1 - 1 + 0.75 - 1.0) / 2
        expected = [[math.tanh(1) + 0.75 - mean], [math.tanh(-1) - 1 - mean]]
        part = TreeValue(add=("a", "b"))
        assert [list(value) for value in advantages(part, group)[0]] == [pytest.approx(one) for one in expected]
        for one, value in zip(group, (0.5, -0.5), strict=True):
            one.measured["node_value"] = [value]
        expected = [[math.tanh(0.5) + 0.75 - mean], [math.tanh(-0.5) - 1 - mean]]
        assert [list(value) for value in advantages(part, group)[0]] == [pytest.approx(one) for one in expected]

    def test_components_that_are_not_there_are_named_in_order(self):
        group = [episode(Said(1, 0), reward=reward, rewards={"z": 1, "y": 1, "x": 1, "w": 1}) for reward in (1.0, 0.0)]
        with pytest.raises(ConfigurationError, match=r"\['p', 'q', 'r', 's'\], but .* \['w', 'x', 'y', 'z'\]"):
            advantages(TreeValue(add=("s", "r", "q", "p", "x")), group)

    def test_a_turn_without_tokens_is_no_node(self):
        turns = Said(1, 0), Said(1, 1), Said(0, 1)
        first, _ = advantages("tree_value", [episode(*turns, reward=reward) for reward in (1.0, 0.0)])[0]
        assert list(first) == [pytest.approx(math.tanh(2 / 3)), pytest.approx(math.tanh(1)), 0, 0]
