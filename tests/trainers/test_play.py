"""What a rollout part plays with: seeds, branches and where they come from."""

from __future__ import annotations

import asyncio

import pytest
from small_run import SmallPlayer, collector

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.trainers.play import GroupPlay
from rstar2_env.trainers.samplers.base import Start


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
    assert [episode.parent for episode in batch.groups[0]] == [(-1, 2), (-1, 2), (0, 3)]


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

    with pytest.raises(ConfigurationError, match="The rollout part Loses returned 0 groups for 4 starts"):
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
