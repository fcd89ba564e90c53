"""``deepsearch``: what is backed up, where the search goes, which ends it returns, what it keeps of hard problems."""

from __future__ import annotations

import asyncio
import json
import math

import numpy as np
import pytest
from branching_play import Words, played
from scripted_engine import EchoEnv
from small_run import SmallPlayer, collector

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.manner import OPEN
from rstar2_env.core.turn import Turn
from rstar2_env.rewards import make_component
from rstar2_env.search import Node
from rstar2_env.testing.training.plain_play import PlainPlay
from rstar2_env.testing.training.processes import in_processes
from rstar2_env.trainers.advantages.tree_value import TreeValue
from rstar2_env.trainers.ranks import ONE
from rstar2_env.trainers.rollouts.chunk_tree import back_up, best_child, best_of, frontier_score, values_of
from rstar2_env.trainers.rollouts.deepsearch import NODE_VALUE, DeepSearch
from rstar2_env.trainers.samplers.base import Start
from rstar2_env.trainers.selectors.keep_all import KeepAll
from rstar2_env.trainers.step.scoring import scorer_of


class Judging(EchoEnv):
    """An answer is right where its last turn says "red" once."""

    def step(self, action):
        text, _, terminated, truncated, _ = super().step(action)
        right = terminated and action.count("red") == 1
        return (
            text,
            float(right),
            terminated,
            truncated,
            {"correct": right, **({"end": "answered"} if terminated else {})},
        )


def searched(part=None, engine=None, **options):
    part = part or DeepSearch(chunk=12, width=3)
    engine = engine or Words(turns=2, least=0)
    return played(part, engine, **{"env": Judging, "size": 6, "groups": 2, **options})[0]


def path_of(length):
    nodes = [Node(None)]
    for _ in range(length - 1):
        nodes.append(Node(None, parent=nodes[-1], action=0))
    return nodes


def test_a_right_end_replaces_wrong_ones_and_wrong_ones_are_ignored_after_it():
    path, seen = path_of(4), []
    for value in (-1, -1, 1, -1):
        back_up(path, value)
        seen.append([node.total for node in path])
    assert seen[0] == [-0.25, -0.5, -0.75, -1.0]
    assert seen[1] == [-0.5, -1.0, -1.5, -2.0]
    assert seen[2] == seen[3] == [0.25, 0.5, 0.75, 1.0]
    assert [node.visits for node in path] == [4] * 4
    assert path[3].mean == 0.25


def test_no_node_of_a_long_path_counts_less_than_a_tenth():
    path = path_of(40)
    back_up(path, 1.0)
    assert [node.total for node in path[:4]] == [0.1] * 4
    assert path[4].total == 0.125


def test_the_child_that_is_followed_is_the_one_with_the_highest_bound():
    root = Node(None)
    first, second = Node(None, parent=root, action=0), Node(None, parent=root, action=0)
    root.visits, first.visits, first.total, second.visits, second.total = 9, 3, 0.6, 4, 3.2
    # 0.2 + 2 sqrt(ln 9 / 3) = 1.9116 against 0.8 + 2 sqrt(ln 9 / 4) = 2.2823
    assert best_child([first, second], 2.0) is second
    second.total = 1.7  # 0.425 + 1.4823 = 1.9073
    assert best_child([first, second], 2.0) is first
    unseen = Node(None, parent=root, action=0)
    assert best_child([unseen, second], 2.0) is second


def test_the_next_node_of_the_frontier():
    assert frontier_score(0.5, 0.8, 16, 64) == pytest.approx(0.5098, abs=5e-5)
    good, bad = Node(None), Node(None)
    good.visits, good.total, bad.visits, bad.total = 2, 1.0, 2, -1.0
    sure, unsure = Node(None, parent=good, action=0, reward=0.1), Node(None, parent=bad, action=0, reward=3.0)
    assert best_of([sure, unsure], 64) is unsure
    unsure.reward = 0.1
    assert best_of([unsure, sure], 64) is sure


@pytest.mark.parametrize("part", [DeepSearch(chunk=12, width=3), DeepSearch(chunk=1000, width=2)])
@pytest.mark.parametrize("size", [2, 8])
def test_it_returns_as_many_ends_as_were_asked_for_each_grown_in_its_tree(part, size):
    for group in searched(part, size=size):
        assert len(group) == size
        assert len({id(episode) for episode in group}) == size
        for place, episode in enumerate(group):
            assert episode.end == "answered"
            assert len(episode.measured[NODE_VALUE]) == len(episode.completion_ids)
            if episode.parent is not None and episode.parent[0] >= 0:
                other, token = episode.parent
                assert other < place
                assert group[other].completion_ids[:token] == episode.completion_ids[:token]
                assert group[other].logprobs[:token] == episode.logprobs[:token]


def test_of_the_ends_of_an_expansion_a_right_one_is_backed_up_or_else_the_surest():
    class Told(PlainPlay):
        """Only one episode is right, if any."""

        right = -1

        async def episode(self, start, *, group, member, **how):
            made = await super().episode(start, group=group, member=member, **how)
            made.correct = member == self.right
            return made

    def first_of(right):
        play = Told(seed=1)
        play.right = right
        (group,) = asyncio.run(DeepSearch(chunk=1000, width=6)([Start(1, {"problem_id": "p"})], 3, play))
        assert len(group) == 3
        return group[0], play.played[:6]

    surest, children = first_of(-1)
    ended = [at for at, one in enumerate(children) if one.end != OPEN]
    doubt = {
        at: -np.mean([p for p, own in zip(children[at].logprobs, children[at].mask, strict=True) if own])
        for at in ended
    }
    assert len(ended) > 2
    assert surest is children[min(ended, key=doubt.get)]
    for right in ended:
        found, again = first_of(right)
        assert found is again[right]


def test_a_search_stops_when_enough_ends_were_backed_up():
    """A node of one end an expansion: as many expansions as ends, and no more."""

    class Expansions(PlainPlay):
        count = 0

        async def branch(self, episode, token, n, **how):
            Expansions.count += 1
            return await super().branch(episode, token, n, **how)

    play = Expansions(seed=2)
    (group,) = asyncio.run(DeepSearch(chunk=2, width=8)([Start(1, {"problem_id": "p"})], 5, play))
    assert len(group) == 5
    assert 4 <= Expansions.count <= 12


def test_the_values_of_nodes_are_the_advantages():
    groups = searched(size=6, groups=3)
    assert any(one.parent and one.parent[0] >= 0 for group in groups for one in group)
    mixed = [group for group in groups if 0 < sum(one.correct for one in group) < len(group)]
    assert mixed
    for group in mixed:
        mean = sum(1.0 if one.correct else -1.0 for one in group) / len(group)
        (advantages,) = TreeValue()([group], ONE)
        for episode, found in zip(group, advantages, strict=True):
            assert found == pytest.approx([math.tanh(value) - mean for value in episode.measured[NODE_VALUE]])
            # The last node has the whole of its own end, whose sign it keeps.
            assert math.copysign(1, episode.measured[NODE_VALUE][-1]) == (1 if episode.correct else -1)


def test_the_search_does_not_depend_on_how_long_chunks_take():
    def ids(groups):
        return [[(episode.completion_ids, episode.parent) for episode in group] for group in groups]

    assert ids(searched()) == ids(searched(engine=Words(turns=2, least=0, delay_s=lambda rng: 0.004 * rng.random())))


def test_a_node_that_cannot_be_repeated_is_given_up():
    class Changing(Judging):
        told = 0

        def step(self, action):
            Changing.told += 1
            text, *rest = super().step(action)
            return f"{text} {Changing.told}", *rest

    groups = searched(DeepSearch(chunk=1000, width=2), env=Changing)
    assert [len(group) for group in groups] == [6] * 2
    assert all(episode.available and episode.end != OPEN for group in groups for episode in group)


def test_a_token_has_the_value_of_the_node_that_it_is_in():
    root = Node(None)
    first = Node(Episode(completion_ids=[1, 2, 3]), parent=root, action=0)
    last = Node(Episode(completion_ids=[1, 2, 3, 4, 5]), parent=first, action=3)
    first.visits, first.total, last.visits, last.total = 2, 1.0, 1, -1.0
    assert values_of(last) == [0.5, 0.5, 0.5, -1.0, -1.0]


def hard(problem, right, count=8, source="policy"):
    made = [
        Episode(problem_id=problem, end="answered", correct=at < right, completion_ids=[at, 5], mask=[1, 1])
        for at in range(count)
    ]
    for one in made:
        one.logprobs, one.prompt_ids, one.source = [-0.5, -0.25], [1, 2], source
    return made


def kept(part):
    return [problem for problem, _ in part.state_dict()["traces"]]


def test_right_episodes_of_hard_problems_are_kept_until_they_are_hard_no_longer():
    part = DeepSearch(kept=2)
    told = [part.report(hard(name, right)) for name, right in (("a", 2), ("b", 3), ("c", 0), ("d", 1))]
    assert [news["trace"] is None for news in told] == [False, True, True, False]
    part.update(told)
    assert kept(part) == ["a", "d"]  # a quarter at most, and not none
    part.update([part.report(hard("e", 1))])
    assert kept(part) == ["d", "e"]
    part.update([part.report(hard("e", 0)), part.report(hard("d", 5))])
    assert kept(part) == ["e"]
    # An old episode says nothing of what the policy can do now.
    assert part.report(hard("f", 8, source="stale")) is None
    assert part.report(hard("", 1)) is None
    off = DeepSearch(hard=0.0)
    off.update([off.report(hard("a", 1))])
    assert kept(off) == []


def test_a_problem_that_is_kept_is_not_searched_again_and_the_state_survives():
    part = DeepSearch(chunk=12, width=3)
    part.update([part.report(hard("p1", 1))])
    again = DeepSearch(chunk=12, width=3)
    again.load_state_dict(json.loads(json.dumps(part.state_dict())))
    for one in (part, again):
        groups = searched(one)
        assert [len(group) for group in groups] == [6] * 2
        assert [NODE_VALUE in episode.measured for episode in groups[1]] == [False] * 6
        assert all(NODE_VALUE in episode.measured for episode in groups[0])
        *fresh, old = groups[1]
        assert (old.source, old.completion_ids, old.logprobs, old.correct) == ("stale", [0, 5], [-0.5, -0.25], True)
        assert old.group == fresh[0].group
        assert all(episode.source == "policy" and episode.parent is None for episode in fresh)


def test_a_kept_episode_is_scored_again_as_at_first():
    scorer = scorer_of([make_component("return:weight=0.5"), make_component("outcome:weight=2")], None, None)
    group = hard("p1", 1)
    for one in group:
        one.steps = [Turn(0, 1, reward=0.25), Turn(1, 2, reward=float(one.correct))]
        one.reward, one.rewards = 0.25 + one.correct, {"steps": 0.25, "answer": float(one.correct)}
    asyncio.run(scorer.score(group, None))
    part = DeepSearch(chunk=12, width=3)
    part.update([part.report(group)])
    old = searched(part)[1][-1]
    asyncio.run(scorer.score([old], None))
    assert (old.reward, old.rewards) == (group[0].reward, group[0].rewards)
    assert old.rewards == {"return/steps": 0.25, "return/answer": 1.0, "return": 0.625, "outcome": 2.0}


@pytest.mark.parametrize(("option", "value"), [("early_stop", True), ("tail", "drop")])
def test_a_run_that_ends_groups_early_is_refused(option, value):
    class Playing:
        max_in_flight = 4

        def check_manner(self, manner):
            assert manner.chunk == 256

    with pytest.raises(ConfigurationError, match="its search extends earlier episodes"):
        collector(Playing(), rollout=DeepSearch(), **{option: value})


class Once(SmallPlayer):
    """Every episode ends in its first chunk; one in eight is right."""

    def __init__(self):
        super().__init__(lambda problem, group, rng: float(rng.random() < 0.125))

    async def episode(self, *, manner=None, **how):
        return await super().episode(**how)

    def check_manner(self, manner):
        pass


def test_every_process_keeps_the_same_of_the_groups_of_all():
    options = {"problems_per_step": 8, "group_size": 8, "selector": KeepAll(), "advantage": TreeValue()}

    def work(ranks):
        part = DeepSearch(width=8)
        collect = collector(Once(), rollout=part, ranks=ranks, **options)
        batches = [collect.collect(step) for step in range(4)]
        stale = sum(one.source == "stale" for batch in batches for group in batch.groups for one in group)
        return collect.state_dict()["parts"]["rollout"], stale

    (one, served), *_ = in_processes(1, work)
    (first, some), (second, others) = in_processes(2, work)
    assert one == first == second
    assert one["traces"]
    assert served == some + others > 0  # 23 problems come again within 32 groups
