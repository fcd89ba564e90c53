"""What a step does with the groups that end last: wait for them, drop them, or let the next step go on with them."""

from __future__ import annotations

import asyncio
import json
from contextlib import closing
from dataclasses import dataclass, field

import numpy as np
import pytest
from small_run import SmallPlayer, collector

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.turn import Turn
from rstar2_env.testing.training.processes import in_processes
from rstar2_env.trainers.selectors.keep_all import KeepAll
from rstar2_env.trainers.step.group_play import GroupPlace
from rstar2_env.trainers.step.step_group import MOST_STEPS, StepGroup


@dataclass
class SteppedPlayer(SmallPlayer):
    """Plays episodes of many turns; those of some problems do not end before ``gate`` opens.

    Attributes:
        slow: Problems whose episodes wait in their third turn.
        gate: Lets them go on.
        version: Version of the weights.
        turns_played: Turns that were generated, by problem.
    """

    slow: frozenset[str] = frozenset()
    gate: bool = False
    version: int = 0
    turns_played: dict[str, int] = field(default_factory=dict)

    async def carry(self, episode, *, options, sampling_seed, begun):
        problem = str(options["problem_id"])
        self.played.append((episode.group, episode.seed, problem))
        rng = np.random.default_rng(sampling_seed)
        told = [] if begun is None else begun.steps
        episode.prompt_ids, episode.problem_id, episode.task = [1, 2, 3], problem, "coins"
        for number in range(4):
            token = int(rng.integers(10, 99))
            if number < len(told):
                version = told[number].version
                assert begun.completion_ids[number] == token
            else:
                while number == 2 and problem in self.slow and not self.gate:
                    await asyncio.sleep(0.002)
                version = self.version
                self.turns_played[problem] = self.turns_played.get(problem, 0) + 1
            episode.completion_ids.append(token)
            episode.mask.append(1)
            episode.logprobs.append(-1.0)
            episode.steps.append(Turn(number, number + 1, version=version))
            episode.turns += 1
            await asyncio.sleep(0)
        episode.reward, episode.end, episode.answer_tags = float(rng.random() < 0.5), "answered", 1
        episode.correct = episode.reward > 0
        return episode

    async def episode(self, *, group, seed, options, sampling_seed):
        record = Episode(group=group, seed=seed)
        return await self.carry(record, options=options, sampling_seed=sampling_seed, begun=None)


def made(player, **options):
    chosen = {"selector": KeepAll(), "spare": 0.5, **options}
    return collector(player, **chosen)


def first_problems(count=6):
    """The problems of the first step, in their order."""
    player = SteppedPlayer()
    made(player, tail="wait", problems_per_step=count).collect(0)
    return list(dict.fromkeys(problem for *_, problem in player.played))


def test_who_waits_begins_no_more_groups_than_train():
    batch = made(SteppedPlayer(), tail="wait").collect(0)
    assert [group[0].group for group in batch.groups] == [0, 1, 2, 3]


def test_who_drops_trains_on_the_first_to_end_and_says_what_became_of_the_others():
    slow = first_problems()[1]
    player = SteppedPlayer(slow=frozenset({slow}))
    collect = made(player, tail="drop", problems_per_step=5, spare=0.2)
    batch = collect.collect(0)
    assert {row.episode.group for row in batch.rows} == {0, 2, 3, 4, 5}
    assert [decision.reason for decision in batch.decisions[1]] == ["cancelled"] * 4
    assert batch.missing == 0
    player.gate = True
    assert slow not in {group[0].problem_id for group in collect.collect(1).groups}, "it is gone"


def test_an_episode_that_had_ended_in_a_dropped_group_does_not_train():
    slow = first_problems()[1]

    class OneEnds(SteppedPlayer):
        ended = 0

        async def episode(self, *, options, **arguments):
            if options["problem_id"] == slow:
                self.ended += 1
                if self.ended > 1:
                    await asyncio.sleep(1000)
            return await super().episode(options=options, **arguments)

    batch = made(OneEnds(), tail="drop", problems_per_step=5, spare=0.2).collect(0)
    assert [decision.reason for decision in batch.decisions[1]] == ["tail", *["cancelled"] * 3]


def test_who_carries_goes_on_with_a_group_in_the_next_step_and_says_which_weights_wrote_what():
    slow = first_problems()[1]
    player = SteppedPlayer(slow=frozenset({slow}))
    collect = made(player, tail="carry", problems_per_step=5, spare=0.2)
    first = collect.collect(0)
    assert slow not in {group[0].problem_id for group in first.groups}
    assert first.figures["rollout/groups_carried"] == (1.0, 1.0)
    assert player.turns_played[slow] == 2 * 4, "two turns of each of its episodes"
    player.gate, player.version = True, 1
    second = collect.collect(1)
    (group,) = [group for group in second.groups if group[0].problem_id == slow]
    assert [[turn.version for turn in episode.steps] for episode in group] == [[0, 0, 1, 1]] * 4
    assert player.turns_played[slow] == 4 * 4, "no turn was generated twice"
    assert {episode.group for episode in group} == {0}, "it comes first"
    unbroken = made(SteppedPlayer(), tail="wait", problems_per_step=6).collect(0)
    assert [one.completion_ids for one in group] == [one.completion_ids for one in unbroken.groups[1]]
    assert len(second.groups) >= 5
    assert len({group[0].group for group in second.groups}) == len(second.groups)


def test_no_group_is_put_off_for_ever():
    slow = first_problems()[1]
    player = SteppedPlayer(slow=frozenset({slow}))
    collect = made(player, tail="carry", problems_per_step=5, spare=0.2)
    for step in range(MOST_STEPS):
        assert slow not in {group[0].problem_id for group in collect.collect(step).groups}

    original = player.carry

    async def carry(*args, **options):
        if not player.gate:
            asyncio.get_running_loop().call_later(0.2, setattr, player, "gate", True)
        return await original(*args, **options)

    player.carry = carry
    assert slow in {group[0].problem_id for group in collect.collect(MOST_STEPS).groups}


@pytest.mark.parametrize("size", [1, 2, 4])
def test_a_resumed_run_goes_on_with_what_was_carried_over_on_any_number_of_processes(size):
    slow = frozenset(first_problems()[1:3])
    player = SteppedPlayer(slow=slow)
    collect = made(player, tail="carry", problems_per_step=4)
    collect.collect(0)
    state = json.loads(json.dumps(collect.state_dict()))
    assert len(state["left"]) == 2

    def work(ranks):
        again = SteppedPlayer(gate=True, version=1)
        resumed = made(again, tail="carry", problems_per_step=4, ranks=ranks)
        resumed.load_state_dict(state)
        with closing(resumed):
            return resumed.collect(1)

    groups = [group for batch in in_processes(size, work) for group in batch.groups]
    carried = [group for group in groups if group[0].problem_id in slow]
    assert len(carried) == 2
    assert all([turn.version for turn in episode.steps] == [0, 0, 1, 1] for group in carried for episode in group)


def test_on_several_processes_the_groups_of_all_are_counted_together():
    slow = frozenset(first_problems()[:2])

    def work(ranks):
        with closing(made(SteppedPlayer(slow=slow), tail="carry", problems_per_step=4, ranks=ranks)) as collect:
            batch = collect.collect(0)
            return [group[0].problem_id for group in batch.groups], len(collect.state_dict()["left"])

    (first, left), (second, also) = in_processes(2, work)
    assert len(first) == 1, "two of the three groups of the first process are slow"
    assert len(second) == 3
    assert left == also == 2


def test_a_player_that_cannot_leave_off_is_refused():
    with pytest.raises(ConfigurationError, match=r"SmallPlayer .*rollout\.tail"):
        collector(SmallPlayer(), tail="carry")


def test_what_is_kept_of_a_group_is_all_of_it():
    player = SteppedPlayer()
    batch = made(player, tail="wait").collect(0)
    episodes = batch.groups[0]
    start = collector().sampler.draw(1)[0]
    ended, begun = {(0,): episodes[0], (1, 5, 2): episodes[1]}, {(2,): episodes[2]}
    one = StepGroup(start, GroupPlace(0, (3, 7), ended, begun), 2)
    again = StepGroup.from_state(json.loads(json.dumps(one.state_dict())))
    assert (again.start, again.place.drawn, again.steps) == (start, (3, 7), 2)
    assert again.place.ended[(1, 5, 2)].logprobs == episodes[1].logprobs
    assert [vars_of(one) for one in again.place.ended.values()] == [vars_of(one) for one in episodes[:2]]
    assert vars_of(again.place.begun[(2,)]) == vars_of(episodes[2])


def vars_of(episode):
    return {**episode.record(), "tokens": [episode.prompt_ids, episode.completion_ids, episode.mask, episode.logprobs]}
