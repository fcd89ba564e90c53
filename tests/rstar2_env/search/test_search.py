"""Claims about search: the formulas' golden numbers, and that each algorithm finds what it can find."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy_worlds import Blocks, WrittenTree

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.search import Beam, DepthFirst, Node, TreeSearch, puct, uct

TRAP = WrittenTree(
    {(0,): 0.6, (0, 0): 0.0, (0, 1): 0.1, (1,): 0.4, (1, 0): 0.2, (1, 1): 1.0, (2,): 0.1, (2, 0): 0.0},
)
"""What looks best after one step (0.6) ends worse than what is second (0.4 + 1.0)."""
ALL = [Beam(width=100, depth=4), DepthFirst(depth=4, ends=0), TreeSearch(iterations=400, depth=4, weight=3.0)]


class TestScores:
    @pytest.mark.parametrize(("parent", "own", "term"), [(10, 0, 3.7515), (10, 3, 0.9379), (100, 5, 2.0813)])
    def test_puct_has_the_published_terms(self, parent, own, term):
        """spcl/x1@9d2695f, x1/strategy/mcts.py: sqrt(N - 1) / (1 + n) * (1.25 + ln((N + 19652) / 19652)), by hand."""
        assert puct(0.0, parent, own) == pytest.approx(term, abs=5e-5)
        assert puct(0.25, parent, own, weight=2.0) == pytest.approx(0.25 + 2 * term, abs=1e-4)

    def test_uct_with_the_weight_of_deepsearch_has_its_published_value(self):
        assert uct(0.2, 9, 3, weight=2.0) == pytest.approx(1.9116, abs=5e-5)

    def test_uct_and_the_defaults_of_the_search_are_those_of_raps_released_code(self):
        """maitrix-org/llm-reasoners@0d7ba67, reasoners/algorithm/mcts.py: .5 + 1 * sqrt(ln 4 / 2), by hand."""
        assert uct(0.5, 4, 2) == pytest.approx(1.332555, abs=1e-6)
        search = TreeSearch()
        assert (search.weight, search.depth, search.iterations, search.backup) == (1.0, 5, 10, "mean")

    def test_uct_of_what_was_never_tried_counts_as_if_it_had_been_once(self):
        assert uct(0.5, 4, 0) == uct(0.5, 4, 1) == pytest.approx(0.5 + math.sqrt(math.log(4)))


class TestATree:
    def test_a_node_knows_its_path_and_what_was_backed_up(self):
        root = Node[str, str]("question")
        step = Node("one", parent=root, action="first")
        leaf = Node("two", parent=step, action="second")
        for value in (0.0, 1.0):
            step.record(value)
        assert leaf.path() == (root, step, leaf)
        assert (leaf.depth, leaf.taken) == (2, "second")
        assert (step.mean, step.best, root.mean) == (0.5, 1.0, 0.0)
        assert list(root.walk()) == [root, step, leaf]
        with pytest.raises(ValueError, match="root"):
            _ = root.taken


class TestAlgorithms:
    @pytest.mark.parametrize("search", ALL, ids=lambda search: type(search).__name__)
    def test_each_finds_the_best_end_when_it_may_look_everywhere(self, search):
        found = search(TRAP, TRAP)
        assert (found.state, found.actions, found.ended) == ((1, 1), [1, 1], True)
        assert found.reward == pytest.approx(1.4)

    def test_greedy_search_walks_into_the_trap(self):
        assert Beam(width=1)(TRAP, TRAP).state == (0, 1)

    def test_the_first_end_of_depth_first_search_follows_what_looks_best(self):
        world = WrittenTree(TRAP.rewards, looks={(2,): 1.0})
        found = DepthFirst()(world, world)
        assert (found.state, found.steps) == ((2, 0), 2)

    def test_depth_first_search_leaves_steps_that_are_too_poor(self):
        assert DepthFirst(ends=0, least=0.5)(TRAP, TRAP).state[0] == 0

    @given(st.recursive(st.floats(-1, 1), lambda below: st.lists(below, min_size=1, max_size=3), max_leaves=12))
    def test_all_agree_on_any_tree_that_they_searched_whole(self, shape):
        rewards: dict[tuple[int, ...], float] = {}

        def write(path, part):
            if path:
                rewards[path] = part if isinstance(part, float) else 0.0
            if isinstance(part, list):
                for place, below in enumerate(part):
                    write((*path, place), below)

        write((), shape)
        world = WrittenTree(rewards)
        best = max(world.ends().values(), default=0.0)
        depth = max(map(len, rewards), default=1)
        nodes = len(rewards)
        for search in (
            Beam(width=100, depth=depth),
            DepthFirst(depth=depth, ends=0),
            # A leaf is visited again and again before what is unknown outweighs it.
            TreeSearch(iterations=40 * (nodes + 1), depth=depth, weight=20.0),
        ):
            assert search(world, world).reward == pytest.approx(best)

    def test_no_branch_is_longer_than_the_depth(self):
        for search in (Beam(depth=1), DepthFirst(depth=1, ends=0), TreeSearch(depth=1)):
            found = search(TRAP, TRAP)
            assert max(node.depth for node in found.root.walk()) == 1
            assert not found.ended

    def test_a_path_that_ended_is_better_than_one_that_was_cut_however_much_that_had_earned(self):
        world = WrittenTree({(0,): 5.0, (0, 0): 0.0, (1,): 0.1})
        for search in (Beam(depth=1), DepthFirst(depth=1, ends=0), TreeSearch(depth=1, weight=20.0)):
            assert search(world, world).state == (1,)

    def test_a_world_without_a_step_is_its_own_answer(self):
        world = WrittenTree({})
        for search in ALL:
            found = search(world, world)
            assert (found.path, found.steps, found.ended) == ((found.root,), 0, True)

    @pytest.mark.parametrize("search", ALL, ids=lambda search: type(search).__name__)
    def test_a_world_that_may_spend_no_more_ends_the_search_with_the_best_so_far(self, search):
        world = WrittenTree(TRAP.rewards, most=3)
        found = search(world, world)
        assert found.steps == 3
        assert found.reward == max(
            sum(node.reward for node in end.path())
            for end in found.root.walk()
            if end.terminal == found.ended and not end.children
        )


class TestTreeSearch:
    def test_blocks_that_greedy_search_cannot_stack_are_stacked_in_ten_iterations(self):
        world = Blocks(start=(("a", "c"), ("b",)), goal=(("c", "b", "a"),))
        assert not Beam(width=1, depth=6)(world, world).ended
        found = TreeSearch(iterations=10, depth=6)(world, world)
        assert found.ended
        assert found.state == (("c", "b", "a"),)

    def test_it_finds_the_best_of_many_leaves_with_fewer_steps_than_random_play(self):
        rng = random.Random(0)
        paths = [(a, b, c) for a in range(4) for b in range(4) for c in range(4)]
        good = (2, 1, 3)
        # Each right step pays a little; the leaf pays most.
        rewards = {path[:length]: 0.2 * (path[:length] == good[:length]) for path in paths for length in (1, 2)}
        rewards |= {path: float(path == good) for path in paths}
        world = WrittenTree(rewards)
        steps = next(
            found.steps
            for iterations in range(1, 200)
            if (found := TreeSearch(iterations=iterations, depth=3, weight=0.5)(world, world)).state == good
        )
        random_steps = []
        for _ in range(200):
            count = 3
            while rng.choice(paths) != good:
                count += 3
            random_steps.append(count)
        assert steps * 2 < sorted(random_steps)[100]

    def test_a_value_model_takes_the_place_of_playing_on(self):
        class Valued(WrittenTree):
            def value(self, state):
                return 5.0 if state == (2,) else 0.0

        world = Valued(TRAP.rewards)
        found = TreeSearch(iterations=4, depth=2, leaf="value", score="puct", discount=0.96)(world, world)
        by_state = {node.state: node for node in found.root.walk()}
        assert by_state[(2,)].best == pytest.approx(0.1 + 0.96 * 5.0)
        with pytest.raises(ConfigurationError, match="`value`"):
            TreeSearch(leaf="value")(TRAP, TRAP)

    def test_the_discount_counts_from_the_root(self):
        found = TreeSearch(iterations=200, weight=3.0, discount=0.5)(TRAP, TRAP)
        assert found.reward == pytest.approx(0.4 + 0.5 * 1.0)
        assert found.root.best == pytest.approx(0.5 * found.reward)

    def test_the_same_world_gives_the_same_tree(self):
        trees = [
            [(node.state, node.visits, node.total) for node in TreeSearch(iterations=30)(TRAP, TRAP).root.walk()]
            for _ in range(2)
        ]
        assert trees[0] == trees[1]

    def test_the_best_that_was_seen_or_the_mean_decides_where_it_looks(self):
        # Below 0 one end is very good and the others very bad; below 1 all are middling.
        rewards = {(0,): 0.0, **{(0, n): 1.0 if n == 0 else -1.0 for n in range(6)}, (1,): 0.0}
        rewards |= {(1, n): 0.2 for n in range(6)}
        world = WrittenTree(rewards)

        def visits(backup):
            found = TreeSearch(iterations=60, weight=1.0, backup=backup)(world, world)
            return {child.state: child.visits for child in found.root.children}

        assert visits("best")[(0,)] > visits("mean")[(0,)]

    def test_options_that_do_not_fit_are_named(self):
        with pytest.raises(ConfigurationError, match="iterations"):
            TreeSearch(iterations=0)
        with pytest.raises(ConfigurationError, match="discount"):
            TreeSearch(discount=1.5)
