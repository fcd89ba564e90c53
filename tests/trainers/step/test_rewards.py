"""How the collector scores episodes with the components of the reward."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import ClassVar

import pytest
from small_run import MIXED, SmallPlayer, by_group, collector

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError, ServiceError
from rstar2_env.core.turn import Turn
from rstar2_env.problems import FixedSource, Problem
from rstar2_env.rewards import Component, OnTurns, ToolUse, make_component
from rstar2_env.rewards.environment_return import EnvironmentReturn
from rstar2_env.trainers.advantages.call_penalty import CallPenalty
from rstar2_env.trainers.advantages.gdpo import Gdpo
from rstar2_env.trainers.advantages.tokens import turn_rewards
from rstar2_env.trainers.selectors.keep_all import KeepAll
from rstar2_env.trainers.step.scoring import scorer_of


def test_the_components_are_set_by_name_and_their_sum_is_the_reward():
    rewards = [
        Component("return", EnvironmentReturn()),
        Component("tools", ToolUse(base=0.1, most=0.1), weight=2.0, gate="correct"),
        Component("nothing", lambda episode, ctx: None),
    ]
    batch = collector(by_group([MIXED]), rewards=rewards, problems_per_step=1).collect(0)
    assert [episode.rewards for episode in batch.groups[0][:2]] == [
        {"return": 1.0, "tools": 0.2},
        {"return": 0.0, "tools": 0.0},
    ]
    assert [episode.reward for episode in batch.groups[0][:2]] == [1.2, 0.0]
    assert batch.figures["rollout/reward/tools"] == pytest.approx((0.4, 4))


def test_a_component_sees_the_returns_of_its_group_and_none_that_does_not_count():
    @dataclass
    class Rank:
        needs: ClassVar = frozenset({"group"})

        def __call__(self, episode, ctx):
            assert all(one.available for one in ctx.group)
            return sum(one.reward < episode.reward for one in ctx.group) / len(ctx.group)

    player = by_group([[0.5, 0.25, "unavailable", 1.0]])
    batch = collector(player, rewards=[Component("rank", Rank())], problems_per_step=1).collect(0)
    assert [episode.reward for episode in batch.groups[0]] == pytest.approx([1 / 3, 0.0, 0.0, 2 / 3])
    assert batch.groups[0][2].rewards == {}


def test_what_the_environment_tells_apart_of_its_return_is_kept_beside():
    class Tells(SmallPlayer):
        def ended(self, earned, *more):
            episode = super().ended(earned, *more)
            episode.rewards = {"task": earned - 0.25, "style": 0.25}
            return episode

    batch = collector(Tells()).collect(0)
    episode = batch.groups[0][0]
    assert episode.rewards == {
        "return/task": episode.reward - 0.25,
        "return/style": 0.25,
        "return": episode.reward,
    }


def test_a_component_may_ask_the_policy_and_is_not_given_what_it_does_not_need():
    class Sure:
        needs = frozenset({"lm"})

        async def __call__(self, episode, ctx):
            assert (ctx.group, ctx.judge) == ((), None)
            assert ctx.info == {"end": "answered"}
            return sum(await ctx.lm.score(episode.prompt_ids, episode.completion_ids[:2])) + episode.reward

    batch = collector(by_group([MIXED]), rewards=[Component("sure", Sure())], problems_per_step=1).collect(0)
    assert [episode.reward for episode in batch.groups[0]] == pytest.approx([0.4, -0.6, -0.6, 0.4])


def test_a_judge_is_asked_or_asked_for():
    class Judged:
        needs = frozenset({"judge"})

        async def __call__(self, episode, ctx):
            return float(await ctx.judge(episode.problem_id))

    async def judge(prompt):
        return prompt[1:]

    with pytest.raises(ConfigurationError, match="'judged' needs a judge"):
        collector(rewards=[Component("judged", Judged())])
    batch = collector(rewards=[Component("judged", Judged())], judge=judge, selector=KeepAll()).collect(0)
    assert all(row.episode.reward == float(row.episode.problem_id[1:]) for row in batch.rows)


@pytest.mark.parametrize(
    ("rewards", "said"),
    [
        ([], "at least one"),
        ([Component("a", ToolUse()), Component("a", ToolUse())], "distinct names"),
        ([Component("a", ToolUse(), when="step")], "when=step.*'a'"),
        ([Component("a", ToolUse(), gate="perhaps")], "gate of 'a'"),
    ],
)
def test_a_reward_that_a_trainer_cannot_pay_is_refused(rewards, said):
    with pytest.raises(ConfigurationError, match=said):
        collector(rewards=rewards)


@pytest.mark.parametrize("of", ["gdpo", "call_penalty:of=gdpo"])
def test_an_advantage_that_names_a_component_which_is_not_there_is_refused_before_the_first_step(of):
    own = Gdpo(weights={"a": 2, "turns/b": 1, "tols": 1})
    part = own if of == "gdpo" else CallPenalty(of={"name": "gdpo", "weights": dict(own.weights)})
    rewards = [Component("a", ToolUse()), Component("b", ToolUse())]
    with pytest.raises(ConfigurationError, match=r"reward components tols, but the reward has only a, b"):
        collector(rewards=rewards, advantage=part)
    collector(rewards=[*rewards, Component("tols", ToolUse())], advantage=part)


def test_what_a_component_gives_to_turns_is_added_to_the_advantage_of_their_tokens_and_to_no_reward():
    class ByTurn:
        def __call__(self, episode, ctx):
            return OnTurns(0.5 + at + episode.reward for at in range(len(episode.steps)))

    rewards = [Component("return", EnvironmentReturn()), Component("steps", ByTurn(), weight=2.0)]
    batch = collector(by_group([MIXED]), rewards=rewards, problems_per_step=1).collect(0)
    plain = collector(by_group([MIXED]), problems_per_step=1).collect(0)
    assert len(batch.rows) == len(plain.rows) > 0
    for row, other in zip(batch.rows, plain.rows, strict=True):
        episode = row.episode
        assert episode.reward == other.episode.reward
        expected = [0.0] * len(episode.completion_ids)
        for at, turn in enumerate(episode.steps):
            expected[turn.start : turn.stop] = [2 * (0.5 + at + episode.reward)] * turn.tokens
        assert list(row.advantage) == pytest.approx([other.advantage + one for one in expected])
        assert set(episode.rewards) == {"return", "turns/steps"}


def test_an_episode_whose_judge_does_not_answer_counts_for_nothing():
    class Judged:
        needs = frozenset({"judge"})

        async def __call__(self, episode, ctx):
            return float(await ctx.judge(str(episode.reward)))

    async def judge(prompt):
        if prompt == "0.25":
            raise ServiceError("The endpoint is down.")
        return prompt

    player = by_group([[0.5, 0.25, 1.0, 0.0]])
    batch = collector(player, rewards=[Component("judged", Judged())], judge=judge, problems_per_step=1).collect(0)
    assert [episode.end for episode in batch.groups[0]] == ["answered", "unavailable", "answered", "answered"]
    assert [row.episode.reward for row in batch.rows] == [0.5, 1.0, 0.0]
    assert batch.results[0].episodes == 3


def test_a_component_that_needs_the_problem_gets_it_or_is_refused():
    class Gold:
        needs = frozenset({"problem"})

        def __call__(self, episode, ctx):
            return float(ctx.problem.answer)

    with pytest.raises(ConfigurationError, match="'gold' needs the problem that is played, and this env"):
        collector(rewards=[Component("gold", Gold())])
    problems = FixedSource([Problem(f"p{at}", "?", str(at)) for at in range(100)], name="small")
    batch = collector(rewards=[Component("gold", Gold())], problems=problems, selector=KeepAll()).collect(0)
    assert all(f"p{row.episode.reward:.0f}" == row.episode.problem_id for row in batch.rows)


def test_a_component_that_learns_is_told_of_every_group_and_its_state_is_kept():
    class Learning:
        def __init__(self):
            self.seen = []

        def __call__(self, episode, ctx):
            return float(len(self.seen))

        def observe(self, outcomes):
            self.seen += [list(one.lengths) for one in outcomes]

        def state_dict(self):
            return {"seen": self.seen}

        def load_state_dict(self, state):
            self.seen = state["seen"]

    one = collector(rewards=[Component("learning", Learning())], selector=KeepAll())
    batch = one.collect(0)
    lengths = [[episode.policy_tokens for episode in group] for group in batch.groups]
    assert one.parts.rewards[0].score.seen == lengths
    assert [outcome.problem_id for outcome in batch.results] == [group[0].problem_id for group in batch.groups]
    other = collector(rewards=[Component("learning", Learning())], selector=KeepAll())
    other.load_state_dict(one.state_dict())
    assert other.parts.rewards[0].score.seen == lengths


def test_episodes_that_the_judge_did_not_score_count_as_failed():
    class Judged:
        needs = frozenset({"judge"})

        async def __call__(self, episode, ctx):
            return float(await ctx.judge("?"))

    async def judge(prompt):
        raise ServiceError("the judge is down")

    checked = []
    player = SmallPlayer()
    player.check = lambda episodes: checked.append(sum(episode.failed for episode in episodes))
    batch = collector(player, rewards=[Component("judged", Judged())], judge=judge).collect(0)
    assert checked == [0, 16], "before and after the episodes are scored"
    assert not batch.rows


@pytest.mark.parametrize(("option", "name"), [({"early_stop": True}, "early_stop"), ({"tail": "drop"}, "tail")])
def test_a_reward_that_plays_is_refused_where_a_round_stops_early(option, name):
    class Plays:
        needs = frozenset({"play"})

        def __call__(self, episode, ctx):
            return 0.0

    with pytest.raises(ConfigurationError, match=f"rollout.{name}"):
        collector(rewards=[Component("plays", Plays())], **option, selector=KeepAll())


@pytest.mark.parametrize(
    ("reward", "expected"),
    [
        (["return"], [1.0, 0.0, 2.0]),
        (["return:weight=0.5"], [0.5, 0.0, 1.0]),
        (["outcome"], [0.0, 0.0, 1.0]),
        (["return:weight=0.5", "outcome"], [0.5, 0.0, 2.0]),
        (["return:clip=[0,1]"], [1 / 3, 0.0, 2 / 3]),
        (["return:gate=wrong"], [0.0, 0.0, 0.0]),
    ],
)
def test_a_turn_earns_what_the_reward_pays_of_the_environments_return(reward, expected):
    turns = [Turn(at, at + 1, reward=value) for at, value in enumerate([1.0, 0.0, 2.0])]
    episode = Episode(completion_ids=[1] * 3, mask=[1] * 3, steps=turns, reward=3.0, correct=True, end="answered")
    asyncio.run(scorer_of([make_component(text) for text in reward], None, None).score([episode], None))
    assert turn_rewards(episode) == pytest.approx(expected)
    assert turn_rewards(episode).sum() == pytest.approx(episode.reward)
