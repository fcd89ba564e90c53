"""``plain``: every episode of every group, from its start to its end."""

import asyncio

from rstar2_env.core.episode import Episode
from rstar2_env.trainers.rollouts.base import ROLLOUTS
from rstar2_env.trainers.rollouts.plain import Plain
from rstar2_env.trainers.samplers.base import Start


class Meeting:
    """Lets an episode go on only once all of them have begun."""

    def __init__(self, expected):
        self.begun, self.expected = [], expected
        self.all_here = asyncio.Event()

    async def episode(self, start, *, group, member, manner):
        self.begun.append((group, member))
        if len(self.begun) == self.expected:
            self.all_here.set()
        async with asyncio.timeout(5):
            await self.all_here.wait()
        return Episode(seed=start.seed, messages=[], turns=member)


def test_all_episodes_play_at_once_and_come_back_group_by_group():
    play = Meeting(6)

    async def run():
        return await Plain()([Start(7), Start(8), Start(9)], 2, play)

    groups = asyncio.run(run())
    assert [[(episode.seed, episode.turns) for episode in group] for group in groups] == [
        [(seed, 0), (seed, 1)] for seed in (7, 8, 9)
    ]
    assert sorted(play.begun) == [(group, member) for group in range(3) for member in range(2)]


def test_no_start_is_no_group():
    assert asyncio.run(Plain()([], 4, Meeting(0))) == []
    assert ROLLOUTS.get("plain") is Plain
