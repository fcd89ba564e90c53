"""The collector: what a step plays, keeps and drops, whatever the number of processes, and where it goes on."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pytest
from processes import all_ranks, on_ranks
from small_run import PROBLEMS, SmallPlayer, coin, collector

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.row import Row
from rstar2_env.rewards import Component, EnvironmentReturn, ToolUse
from rstar2_env.trainers.advantages.group import GroupMean, GroupMeanBatchStd
from rstar2_env.trainers.advantages.reinforce import Reinforce
from rstar2_env.trainers.ranks import OtherProcessError
from rstar2_env.trainers.samplers.uniform import Uniform
from rstar2_env.trainers.selectors.keep_all import KeepAll
from rstar2_env.trainers.selectors.resample_on_correct import ResampleOnCorrect


def by_group(earned):
    """Episodes of group ``n`` earn what the ``n``-th list says, in turn; further groups start again at the first."""
    told: dict[int, int] = {}

    def earns(problem, group, rng):
        told[group] = told.get(group, -1) + 1
        return earned[group % len(earned)][told[group]]

    return SmallPlayer(earns)


MIXED, SAME = [1.0, 0.0, 0.0, 1.0], [0.0] * 4
SIGNS = [1.0, -1.0, -1.0, 1.0]


def advantages(batch):
    return [row.advantage for row in batch.rows]


class TestOneStep:
    def test_only_the_episodes_that_train_are_rows_and_every_episode_is_told(self):
        batch = collector(by_group([MIXED, SAME, [1.0, "unavailable", 0.0, 1.0], MIXED])).collect(0)
        assert len(batch.rows) == 4 + 3 + 4
        assert advantages(batch)[:4] == pytest.approx([0.8660 * sign for sign in SIGNS], abs=1e-3)
        assert advantages(batch)[4:7] == pytest.approx([0.5773, -1.1547, 0.5773], abs=1e-3)
        reasons = [[decision.reason for decision in group] for group in batch.decisions]
        assert reasons == [[""] * 4, ["equal"] * 4, ["", "unavailable", "", ""], [""] * 4]
        assert [[decision.kept for decision in group] for group in batch.decisions][1] == [False] * 4
        assert batch.decisions[0][1].advantage == pytest.approx(-0.8660, abs=1e-3)
        assert [len(group) for group in batch.groups] == [4] * 4
        assert (batch.rejected, batch.refilled, batch.missing) == (1, 0, 1)
        assert all(row.trains for row in batch.rows)

    def test_every_episode_of_a_group_starts_alike_and_draws_for_itself(self):
        player = SmallPlayer()
        batch = collector(player, group_size=3).collect(0)
        assert len(player.played) == 12
        for number, group in enumerate(batch.groups):
            assert {(one.group, one.seed, one.problem_id) for one in group} == {
                (number, group[0].seed, group[0].problem_id)
            }
            assert len({tuple(one.completion_ids) for one in group}) == 3

    def test_it_is_the_same_again_and_differs_by_step_and_seed(self):
        def ids(seed, step):
            return [row.completion_ids for row in collector(seed=seed).collect(step).rows]

        assert ids(1, 5) == ids(1, 5)
        assert ids(1, 5) != ids(1, 6)
        assert ids(1, 5) != ids(2, 5)

    def test_a_lone_survivor_trains_only_where_the_advantage_needs_no_group(self):
        alone = [[1.0, "unavailable", "cancelled", "unavailable"], MIXED]
        batch = collector(by_group(alone), selector=KeepAll(), problems_per_step=2).collect(0)
        assert [decision.reason for decision in batch.decisions[0]] == [
            "alone",
            "unavailable",
            "cancelled",
            "unavailable",
        ]
        assert len(batch.rows) == 4
        options = {"selector": KeepAll(), "advantage": Reinforce(), "problems_per_step": 2}
        batch = collector(by_group(alone), **options).collect(0)
        assert advantages(batch) == pytest.approx([0.4, 0.4, -0.6, -0.6, 0.4])

    def test_a_group_of_one_needs_an_advantage_without_groups(self):
        with pytest.raises(ConfigurationError, match=r"GroupMean compares .* at least 2, not 1 \(group_size=\.\.\.\)"):
            collector(advantage=GroupMean(), group_size=1)
        batch = collector(advantage=Reinforce(), selector=KeepAll(), group_size=1).collect(0)
        assert len(batch.rows) == 4

    def test_an_episode_without_a_token_of_the_policy_does_not_train(self):
        def silent(episode, ctx):
            episode.mask = [0] * len(episode.mask) if episode.reward == 0.25 else episode.mask
            return episode.reward

        player = by_group([[1.0, 0.25, 0.0, 0.0]])
        batch = collector(player, rewards=[Component("r", silent)], problems_per_step=1).collect(0)
        assert [decision.reason for decision in batch.decisions[0]] == ["", "no_tokens", "", ""]
        assert len(batch.rows) == 3

    def test_too_many_failures_end_the_step(self):
        with pytest.raises(RuntimeError, match="every episode failed"):
            collector(by_group([["unavailable"] * 4])).collect(0)

    def test_no_more_than_is_allowed_play_at_once(self):
        player = SmallPlayer(delay_s=lambda rng: 0.002, max_in_flight=3)
        collector(player).collect(0)
        assert player.most_in_flight == 3

    def test_a_rollout_part_may_make_several_rows_of_an_episode(self):
        class Halves:
            async def __call__(self, starts, size, play):
                return [
                    [await play.episode(start, group=group, member=member) for member in range(size)]
                    for group, start in enumerate(starts)
                ]

            def rows(self, episode, advantage):
                middle = len(episode.completion_ids) // 2
                parts = (slice(0, middle), slice(middle, None))
                return [
                    Row(
                        episode,
                        episode.prompt_ids,
                        episode.completion_ids[part],
                        episode.mask[part],
                        episode.logprobs[part],
                        advantage,
                        start=part.start,
                    )
                    for part in parts
                ]

        batch = collector(by_group([MIXED]), rollout=Halves(), problems_per_step=1).collect(0)
        assert len(batch.rows) == 8
        assert advantages(batch)[::2] == advantages(batch)[1::2]

    def test_an_advantage_may_be_one_number_a_token(self):
        class ByToken:
            def __call__(self, groups, ranks):
                return [[np.arange(len(episode.completion_ids)) - 1.0 for episode in group] for group in groups]

        batch = collector(by_group([MIXED]), advantage=ByToken(), problems_per_step=1).collect(0)
        row = batch.rows[0]
        assert row.advantage.shape == (len(row.completion_ids),)
        expected = np.abs(np.arange(len(row.completion_ids)) - 1.0).mean()
        assert batch.decisions[0][0].advantage == pytest.approx(expected)

    @pytest.mark.parametrize("wrong", [[1.0], [float("nan")] * 4, [np.zeros(99)] * 4])
    def test_an_advantage_that_fits_no_episode_is_refused(self, wrong):
        class Wrong:
            def __call__(self, groups, ranks):
                return [wrong for _ in groups]

        with pytest.raises(ConfigurationError, match="The advantage Wrong must return"):
            collector(by_group([MIXED]), advantage=Wrong()).collect(0)

    @pytest.mark.parametrize(
        ("wrong", "said"),
        [([1, 0], "ascending"), ([0, 0], "ascending"), ([0, 9], "from 0 to 3"), ([0, 1, 2], "at most 2"), ([1], "[1]")],
    )
    def test_a_selector_that_chooses_what_it_must_not_is_refused(self, wrong, said):
        class Wrong:
            def __call__(self, group, keep, rng):
                return wrong

        player = by_group([[1.0, "unavailable", 0.0, 1.0]])
        with pytest.raises(ConfigurationError, match="The selector Wrong") as caught:
            collector(player, selector=Wrong(), group_size=2, oversample=2).collect(0)
        assert said in str(caught.value)

    def test_a_selector_without_reasons_gets_plain_ones(self):
        class First:
            def __call__(self, group, keep, rng):
                return [0, 1] if group[0].reward else []

        player = by_group([[1.0, 0.0, "unavailable", 0.0], [0.0, 1.0, 1.0, 1.0]])
        batch = collector(player, selector=First(), problems_per_step=2, group_size=2, oversample=2).collect(0)
        reasons = [[decision.reason for decision in group] for group in batch.decisions]
        assert reasons == [["", "", "unavailable", "unselected"], ["rejected"] * 4]


class TestRewards:
    def test_the_components_are_set_by_name_and_their_sum_is_the_reward(self):
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

    def test_a_component_sees_the_returns_of_its_group_and_none_that_does_not_count(self):
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

    def test_what_the_environment_tells_apart_of_its_return_is_kept_beside(self):
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

    def test_a_component_may_ask_the_policy_and_is_not_given_what_it_does_not_need(self):
        class Sure:
            needs = frozenset({"lm"})

            async def __call__(self, episode, ctx):
                assert (ctx.group, ctx.judge) == ((), None)
                assert ctx.info == {"end": "answered"}
                return sum(await ctx.lm.score(episode.prompt_ids, episode.completion_ids[:2])) + episode.reward

        batch = collector(by_group([MIXED]), rewards=[Component("sure", Sure())], problems_per_step=1).collect(0)
        assert [episode.reward for episode in batch.groups[0]] == pytest.approx([0.4, -0.6, -0.6, 0.4])

    def test_a_judge_is_asked_or_asked_for(self):
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
            ([Component("a", ToolUse(), when="step")], "'a' at the end of an episode"),
            ([Component("a", ToolUse(), gate="perhaps")], "gate of 'a'"),
        ],
    )
    def test_a_reward_that_a_trainer_cannot_pay_is_refused(self, rewards, said):
        with pytest.raises(ConfigurationError, match=said):
            collector(rewards=rewards)


def note_round(rounds, groups, number):
    rounds.append((number, len(groups)))


class TestRefill:
    @pytest.mark.parametrize("rate", [0.1, 0.3, 0.7])
    def test_it_returns_exactly_the_wanted_groups_or_uses_up_its_rounds_and_says_so(self, rate):
        def earns(problem, group, rng):
            return float(rng.random() < rate)

        short = 0
        for seed in range(12):
            rounds: list[tuple[int, int]] = []
            note = partial(note_round, rounds)
            collect = collector(SmallPlayer(earns), seed=seed, refill=3, on_groups=note)
            batch = collect.collect(0)
            trained = {row.episode.group for row in batch.rows}
            assert len(trained) == 4 - batch.missing
            assert [number for number, _ in rounds] == list(range(len(rounds)))
            assert all(count for _, count in rounds)
            assert len(rounds) == 4 or not batch.missing
            assert sum(count for _, count in rounds) == len(batch.groups) == 4 + batch.refilled
            assert batch.rejected == len(batch.groups) - len(trained)
            # As many are played anew as were rejected the round before.
            kept = [
                sum(any(d.kept for d in group) for group in batch.decisions if group[0].round == r) for r, _ in rounds
            ]
            assert [count for _, count in rounds[1:]] == [
                4 - sum(kept[: number + 1]) for number in range(len(rounds) - 1)
            ]
            short += batch.missing > 0
        assert 0 < short < 12 if rate == 0.1 else short <= 6

    def test_a_fresh_group_is_a_fresh_problem_and_its_round_is_told(self):
        player = by_group([MIXED, SAME, MIXED, MIXED, SAME, MIXED])
        batch = collector(player, refill=5).collect(0)
        assert [group[0].round for group in batch.decisions] == [0, 0, 0, 0, 1, 2]
        assert [group[0].group for group in batch.groups] == [0, 1, 2, 3, 4, 5]
        problems = [group[0].problem_id for group in batch.groups]
        assert problems == [start.options["problem_id"] for start in Uniform(PROBLEMS).draw(6)]
        assert (batch.rejected, batch.refilled, batch.missing) == (2, 2, 0)
        assert batch.figures["rollout/groups_rejected"] == (2.0, 6.0)

    def test_without_rounds_nothing_is_played_anew(self):
        batch = collector(by_group([SAME])).collect(0)
        assert (batch.rows, batch.rejected, batch.missing, batch.refilled) == ([], 4, 4, 0)


class TestSeveralProcesses:
    def test_two_collect_what_one_does(self):
        one = collector(refill=0).collect(3)
        two = all_ranks(2, lambda ranks: collector(ranks=ranks).collect(3))
        assert [row.completion_ids for batch in two for row in batch.rows] == [row.completion_ids for row in one.rows]
        assert [value for batch in two for value in advantages(batch)] == advantages(one)
        for name, figure in one.figures.items():
            together = np.sum([batch.figures[name] for batch in two], axis=0)
            assert together == pytest.approx(np.array(figure)), name

    @pytest.mark.parametrize("selector", [ResampleOnCorrect(), ResampleOnCorrect(mode="rank")])
    def test_the_selection_of_a_group_does_not_depend_on_who_plays_it(self, selector):
        options = {"selector": selector, "oversample": 2}
        one = collector(**options).collect(0)
        two = all_ranks(2, lambda ranks: collector(ranks=ranks, **options).collect(0))
        assert [row.completion_ids for batch in two for row in batch.rows] == [row.completion_ids for row in one.rows]

    def test_they_agree_on_every_round_of_refill(self):
        def work(ranks):
            collect = collector(by_group([SAME, MIXED, MIXED, SAME, SAME, MIXED]), ranks=ranks, refill=4)
            batch = collect.collect(0)
            return batch, ranks.calls, collect.state_dict()

        (first, calls, state), (second, other_calls, other_state) = all_ranks(2, work)
        assert calls == other_calls
        assert state == other_state
        # Groups 0 and 3 fail, 4 and 5 replace them; 4 fails, and is replaced by 6 and 7, since each process plays one.
        assert [group[0].group for group in first.groups] == [0, 1, 4, 6]
        assert [group[0].group for group in second.groups] == [2, 3, 5, 7]
        assert {row.episode.group for batch in (first, second) for row in batch.rows} == {1, 2, 5, 7}
        assert first.missing == second.missing == 0

    def test_groups_beyond_those_wanted_are_dropped_as_surplus(self):
        def work(ranks):
            player = by_group([SAME, *[MIXED] * 7])
            return collector(player, ranks=ranks, refill=1).collect(0)

        first, second = all_ranks(2, work)
        assert {row.episode.group for batch in (first, second) for row in batch.rows} == {1, 2, 3, 4}
        assert [decision.reason for decision in second.decisions[-1]] == ["surplus"] * 4
        assert second.rejected == 1

    def test_a_process_that_fails_ends_all(self):
        def work(ranks):
            def earns(problem, group, rng):
                if group == 3:
                    raise OSError("no device")
                return coin(problem, group, rng)

            return collector(SmallPlayer(earns), ranks=ranks).collect(0)

        first, second = on_ranks(2, work)
        assert isinstance(second, OSError)
        assert isinstance(first, OtherProcessError)
        assert str(first) == "Process 1 of 2 failed: OSError: no device"

    def test_an_advantage_that_fails_on_one_process_ends_all(self):
        class Fails(GroupMeanBatchStd):
            def __call__(self, groups, ranks):
                if ranks.rank == 0:
                    raise ValueError("no sum")
                return super().__call__(groups, ranks)

        first, second = on_ranks(2, lambda ranks: collector(ranks=ranks, advantage=Fails()).collect(0))
        assert isinstance(first, ValueError)
        assert isinstance(second, OtherProcessError)

    def test_a_share_of_no_group_that_trains_still_reduces(self):
        def work(ranks):
            player = by_group([MIXED, SAME])
            return collector(player, ranks=ranks, problems_per_step=2, advantage=GroupMeanBatchStd()).collect(0)

        first, second = all_ranks(2, work)
        assert second.rows == []
        # The rejected group of the other process is of the batch: 0.5 over the deviation of 1, 0, 0, 1, 0, 0, 0, 0.
        assert advantages(first) == pytest.approx([1.0801 * sign for sign in SIGNS], abs=3e-4)

    def test_groups_are_not_split(self):
        with pytest.raises(ConfigurationError, match="use a multiple of 2"):
            all_ranks(2, lambda ranks: collector(ranks=ranks, problems_per_step=3))


class TestBatchStatistics:
    def test_a_rejected_group_belongs_to_the_batch(self):
        options = {"advantage": GroupMeanBatchStd(), "problems_per_step": 2}
        for selector in (KeepAll(), KeepAll(reject_equal=True), ResampleOnCorrect()):
            batch = collector(by_group([MIXED, SAME]), selector=selector, **options).collect(0)
            assert advantages(batch)[:4] == pytest.approx([1.0801 * sign for sign in SIGNS], abs=3e-4)
            assert len(batch.rows) == (8 if selector == KeepAll() else 4)

    def test_a_group_that_was_replaced_does_not(self):
        player = by_group([MIXED, SAME, [1.0, 1.0, 0.0, 0.0]])
        batch = collector(player, advantage=GroupMeanBatchStd(), problems_per_step=2, refill=1).collect(0)
        assert np.abs(advantages(batch)) == pytest.approx(0.5 / 0.53452, abs=3e-4)

    def test_of_all_that_were_rejected_those_that_nobody_replaced_do(self):
        player = by_group([MIXED, SAME, SAME])
        batch = collector(player, advantage=GroupMeanBatchStd(), problems_per_step=2, refill=1).collect(0)
        assert batch.missing == 1
        assert np.abs(advantages(batch)) == pytest.approx(1.0801, abs=3e-4)

    def test_a_group_that_was_played_beyond_those_wanted_does_not(self):
        def work(ranks):
            player = by_group([MIXED, SAME, MIXED, SAME])
            options = {"advantage": GroupMeanBatchStd(), "problems_per_step": 2, "refill": 1}
            return collector(player, ranks=ranks, **options).collect(0)

        for batch in all_ranks(2, work):
            assert batch.missing == 0
            assert np.abs(advantages(batch)) == pytest.approx(0.5 / 0.53452, abs=3e-4)

    def test_an_estimator_of_groups_alone_sees_those_that_train(self):
        seen: list[int] = []

        class Looks(GroupMean):
            def __call__(self, groups, ranks):
                seen.extend(len(group) for group in groups)
                return super().__call__(groups, ranks)

        collector(by_group([MIXED, SAME]), advantage=Looks()).collect(0)
        assert seen == [4, 4]


class Remembers(Uniform):
    """A sampler that draws the problems with the fewest successes so far; ties by their order."""

    def __init__(self, ids, seed=0):
        super().__init__(ids, seed)
        self.successes: dict[str, int] = dict.fromkeys(ids, 0)
        self.heard: list[Any] = []

    def draw(self, n):
        starts = super().draw(n)
        hardest = sorted(self.successes, key=lambda name: (self.successes[name], name))[:n]
        return [type(start)(start.seed, {"problem_id": name}) for start, name in zip(starts, hardest, strict=True)]

    def observe(self, outcomes):
        self.heard.append(outcomes)
        for outcome in outcomes:
            self.successes[outcome.start.problem_id] += outcome.successes

    def state_dict(self):
        return {**super().state_dict(), "successes": dict(self.successes)}

    def load_state_dict(self, state):
        super().load_state_dict(state)
        self.successes = dict(state["successes"])


class Moody:
    """A selector with a state: it rejects every third group that it sees."""

    def __init__(self):
        self.seen = 0

    def __call__(self, group, keep, rng):
        self.seen += 1
        return [] if self.seen % 3 == 0 else list(range(keep))

    def state_dict(self):
        return {"seen": self.seen}

    def load_state_dict(self, state):
        self.seen = state["seen"]


class TestState:
    @pytest.mark.parametrize("at", [1, 2, 5])
    def test_a_resumed_run_collects_what_the_unbroken_one_does(self, at):
        def make():
            return collector(sampler=Remembers(PROBLEMS), selector=Moody(), refill=2)

        whole = make()
        unbroken, states = [], []
        for step in range(7):
            states.append(json.loads(json.dumps(whole.state_dict())))
            unbroken.append([row.completion_ids for row in whole.collect(step).rows])
        resumed = make()
        resumed.load_state_dict(states[at])
        assert [[row.completion_ids for row in resumed.collect(step).rows] for step in range(at, 7)] == unbroken[at:]
        assert resumed.state_dict() == whole.state_dict()
        assert resumed.counts["steps"] == 7

    def test_the_sampler_hears_how_the_groups_of_all_processes_went(self):
        def work(ranks):
            sampler = Remembers(PROBLEMS)
            player = by_group([MIXED, [1.0, "unavailable", 0.0, 0.0], SAME, ["unavailable"] * 4])
            collector(player, ranks=ranks, sampler=sampler).collect(0)
            return sampler.heard

        first, second = all_ranks(2, work)
        assert first == second
        ((a, b, c, d),) = first
        assert [one.group for one in (a, b, c, d)] == [0, 1, 2, 3]
        assert [one.start.problem_id for one in (a, b, c, d)] == sorted(PROBLEMS)[:4]
        assert [(one.episodes, one.successes, one.kept) for one in (a, b, c, d)] == [
            (4, 2, 4),
            (3, 1, 3),
            (4, 0, 0),
            (0, 0, 0),
        ]
        assert a.advantage == pytest.approx(0.8660, abs=1e-3)
        assert (b.reward, c.advantage, d.reward) == (pytest.approx(1 / 3), 0.0, 0.0)
        assert (a.task, d.task) == ("coins", "")


class TestEarlyStop:
    def test_the_rest_of_a_settled_group_is_cancelled_and_in_no_mean(self):
        def slow_last(rng):
            return 0.001 if rng.random() < 0.5 else 0.2

        options = {"group_size": 2, "oversample": 4, "selector": ResampleOnCorrect(spare=1.0), "early_stop": True}
        batch = collector(SmallPlayer(delay_s=slow_last), **options).collect(0)
        ends = [decision.reason for group in batch.decisions for decision in group]
        assert ends.count("cancelled") >= 4
        assert batch.seconds["rollout"] < 0.2 * 2
        cancelled, played = batch.figures["rollout/cancelled"]
        assert (cancelled, played) == (ends.count("cancelled"), 32)
        assert batch.figures["rollout/reward"][1] == 32 - cancelled

    def test_a_selector_that_cannot_tell_is_refused(self):
        with pytest.raises(ConfigurationError, match="early_stop needs a selector"):
            collector(selector=Moody(), early_stop=True)


class TestFigures:
    def test_shares_that_were_looked_for_are_there_with_their_counts(self):
        batch = collector(by_group([MIXED, [1.0, "unavailable", 0.0, 0.0]]), problems_per_step=2).collect(0)
        figures = batch.figures
        assert figures["rollout/pass_rate"] == (3.0, 7.0)
        assert figures["rollout/unavailable"] == (1.0, 8.0)
        assert figures["rollout/end/tokens"] == (0.0, 8.0)
        assert figures["rollout/end/answered"] == (7.0, 8.0)
        assert figures["rollout/status/timeout"] == (0.0, 0.0)
        assert figures["rollout/tool_error_share"] == (0.0, 0.0)
        assert figures["rollout/episodes"] == (7.0, 1.0)
        assert figures["kept/episodes"] == (7.0, 1.0)
        assert figures["dropped/unavailable"] == (1.0, 8.0)
        assert set(batch.seconds) == {"rollout", "reward", "select", "advantage"}

    def test_a_word_that_only_another_process_saw_has_its_count_here(self):
        def work(ranks):
            return collector(by_group([MIXED, SAME]), ranks=ranks, problems_per_step=2).collect(0).figures

        first, second = all_ranks(2, work)
        assert first["dropped/equal"] == (0.0, 4.0)
        assert second["dropped/equal"] == (4.0, 4.0)
