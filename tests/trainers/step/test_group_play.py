"""What a rollout part plays with: seeds, branches and where they come from."""

from __future__ import annotations

import asyncio
import json

import pytest
from small_run import SmallPlayer, advantages, by_group, collector

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.problems import load_problems
from rstar2_env.testing.training.processes import in_processes
from rstar2_env.trainers.samplers.base import Start
from rstar2_env.trainers.step.group_play import GroupPlace, GroupPlay
from rstar2_env.trainers.step.step_group import StepGroup


def play_of(player=None, **options):
    return GroupPlay(player or SmallPlayer(), **{"seed": 3, "step": 5, "first": 0, "size": 2, **options})


def ids(play, group, member):
    return asyncio.run(play.episode(Start(1), group=group, member=member)).completion_ids


def test_the_draws_of_an_episode_depend_on_its_number_in_the_step_alone():
    assert ids(play_of(), 3, 1) == ids(play_of(first=2), 1, 1)
    everything = [ids(play_of(step=step), group, member) for step in (1, 2) for group in (0, 1) for member in (0, 1, 2)]
    assert len({tuple(one) for one in everything}) == 12


def test_a_part_draws_differently_in_every_call():
    draws = {play_of(step=step, first=first).rng.random() for step in (0, 1) for first in (0, 4)}
    assert len(draws) == 4
    assert play_of(step=1).rng.random() in draws


class Branching:
    """Plays one episode and branches the others off it, and off each other."""

    def __init__(self, *, forget=False):
        self.forget = forget

    async def __call__(self, starts, size, play):
        groups = []
        for number, start in enumerate(starts):
            first = await play.episode(start, group=number, member=0)
            children = await play.branch(first, 2, size - 2)
            group = [first, *children, *await play.branch(children[0], 3, 1)]
            groups.append(group[1:] if self.forget else group)
        return groups


def test_branches_tell_their_parents_by_their_places():
    batch = collector(rollout=Branching()).collect(0)
    for group in batch.groups:
        assert [episode.parent for episode in group] == [None, (0, 2), (0, 2), (1, 3)]
        assert group[1].completion_ids[:2] == group[0].completion_ids[:2]
        assert len({tuple(episode.completion_ids) for episode in group}) == 4
    again = collector(rollout=Branching()).collect(0)
    assert [[one.completion_ids for one in group] for group in again.groups] == [
        [one.completion_ids for one in group] for group in batch.groups
    ]


def test_a_parent_that_is_left_out_has_no_place():
    batch = collector(rollout=Branching(forget=True)).collect(0)
    # The second shares two tokens with the first, through the one that both branched off.
    assert [episode.parent for episode in batch.groups[0]] == [(-1, 2), (0, 2), (0, 3)]


def test_only_episodes_of_the_call_can_be_branched():
    async def across():
        stranger = await play_of().episode(Start(1), group=0, member=0)
        await play_of().branch(stranger, 1, 1)

    with pytest.raises(ConfigurationError, match="played in the same call"):
        asyncio.run(across())


def test_a_part_must_return_a_group_for_every_start():
    class Loses:
        async def __call__(self, starts, size, play):
            return []

    with pytest.raises(
        ConfigurationError, match="The rollout part Loses returned 0 groups, but it was called with 4 starts"
    ):
        collector(rollout=Loses()).collect(0)


def test_a_part_that_is_cancelled_leaves_nothing_running():
    player = SmallPlayer(delay_s=lambda rng: 30.0)

    async def run():
        task = asyncio.create_task(play_of(player).episode(Start(1), group=0, member=0))
        await asyncio.sleep(0.01)
        assert player.in_flight == 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0)
        return player.in_flight

    assert asyncio.run(run()) == 0


def test_nothing_of_a_settled_group_is_begun_any_more():
    player = SmallPlayer()
    play = play_of(player, settled=lambda group: group[0] is not None)

    async def run():
        first = await play.episode(Start(1), group=0, member=0)
        rest = await play.episode(Start(1), group=0, member=1)
        return first, rest, (await play.branch(first, 1, 1))[0], await play.episode(Start(2), group=1, member=0)

    first, rest, branch, other = asyncio.run(run())
    assert [one.end for one in (first, rest, branch, other)] == ["answered", "cancelled", "cancelled", "answered"]
    assert len(player.played) == 2


class Helping:
    """Plays all but the last episode plain, the last one with help, and leaves it out of the selection."""

    def __init__(self):
        self.learnt = []

    async def __call__(self, starts, size, play):
        groups = []
        for number, start in enumerate(starts):
            plain = [await play.episode(start, group=number, member=member) for member in range(size)]
            groups.append([*plain, await play.episode(start, group=number, member=size, shown="{question} Hint.")])
        return groups

    def apart(self, group):
        return [len(group) - 1]

    def report(self, group):
        return [group[0].problem_id, sum(one.correct for one in group)]

    def update(self, reports):
        self.learnt.append(reports)


def test_what_was_played_with_help_trains_under_the_plain_prompt_and_its_rows_say_so():
    batch = collector(rollout=Helping()).collect(0)
    helped = [row for row in batch.rows if row.columns["off_policy"]]
    assert len(helped) == 4  # one of each group, rejected or not
    assert {(*row.prompt_ids, row.advantage, row.episode.source) for row in helped} == {(1, 2, 3, 0.0, "refined")}
    assert all(row.columns["off_policy"] == float(row.episode.off_policy) for row in batch.rows)


def test_an_episode_that_trains_apart_is_neither_selected_nor_counted_as_the_policys():
    batch = collector(by_group([[1.0, 0.0, 0.0, 1.0, 1.0]]), rollout=Helping()).collect(0)
    assert [[one.kept for one in group] for group in batch.decisions] == [[True] * 5] * 4
    assert [group[-1].advantage for group in batch.decisions] == [0.0] * 4
    assert advantages(batch)[:4] == pytest.approx([0.866, -0.866, -0.866, 0.866], abs=1e-3)
    assert {row.columns["accuracy"] for row in batch.rows} == {0.5}


def test_a_part_learns_of_the_groups_of_all_processes_in_their_order():
    alone = Helping()
    collector(rollout=alone).collect(0)

    def work(ranks):
        part = Helping()
        collector(rollout=part, ranks=ranks).collect(0)
        return part.learnt

    assert in_processes(2, work) == [alone.learnt] * 2
    assert len(alone.learnt[0]) == 4


class InTwoStages(Helping):
    staged = "the second stage answers the first"


@pytest.mark.parametrize(
    ("options", "named"), [({"early_stop": True}, "rollout.early_stop"), ({"tail": "drop"}, "rollout.tail")]
)
def test_a_part_of_several_stages_is_refused_where_groups_may_end_early(options, named):
    with pytest.raises(ConfigurationError, match="since the second stage answers the first") as caught:
        collector(rollout=InTwoStages(), **options)
    assert named in str(caught.value)


def test_a_problem_is_found_by_its_id():
    source = load_problems([{"id": "p", "question": "What?", "answer": "4", "rubric": ["Says four."]}])
    play = play_of(problems=source)
    assert (play.problem("p").answer, play.problem("p").meta["rubric"]) == ("4", ["Says four."])
    assert (play.problem("q"), play.problem(""), play_of().problem("p")) == (None, None, None)


def test_a_player_that_cannot_reply_is_told_so():
    with pytest.raises(ConfigurationError, match="SmallPlayer cannot ask the policy"):
        asyncio.run(play_of().reply("What?", group=0, member=0))


def test_a_group_that_is_left_off_keeps_the_prompts_that_its_episodes_were_shown():
    helped = asyncio.run(play_of().episode(Start(1), group=0, member=0, shown="Hint: {question}"))
    left = StepGroup(Start(1), GroupPlace(0, (0, 0), ended={(0,): helped}, begun={(1,): helped}), 1)
    again = StepGroup.from_state(json.loads(json.dumps(left.state_dict())))
    assert again.place.ended[0,].shown_ids == again.place.begun[1,].shown_ids == helped.shown_ids == [9, 1, 2, 3]
    assert again.place.ended[0,].shown == "Hint: {question}"
