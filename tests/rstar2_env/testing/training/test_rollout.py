"""check_rollout passes a sound part and names the one clause that a broken one breaks."""

import asyncio
import random
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from mutants import broken

from rstar2_env.core.row import Row
from rstar2_env.testing import ROLLOUT_CHECKS, check_rollout


@dataclass
class Sound:
    """Plays all but one episode of each group, and branches the last one off a random turn of the first."""

    async def __call__(self, starts, size, play):
        return list(
            await asyncio.gather(*(self.group(number, start, size, play) for number, start in enumerate(starts)))
        )

    async def group(self, number, start, size, play):
        members = (play.episode(start, group=number, member=member) for member in range(size - 1))
        episodes = list(await asyncio.gather(*members))
        root = next((episode for episode in episodes if episode.steps), None)
        if root is None:
            return [*episodes, await play.episode(start, group=number, member=size - 1)]
        turn = root.steps[number % len(root.steps)]
        return episodes + await play.branch(root, turn.start, 1)

    def rows(self, episode, advantage):
        return [Row.of(episode, advantage)]


class NoneOfTheLast(Sound):
    async def __call__(self, starts, size, play):
        return (await super().__call__(starts, size, play))[:2]


class TwiceTheFirst(Sound):
    async def group(self, number, start, size, play):
        episodes = await super().group(number, start, size, play)
        return [episodes[0], *episodes[:-1]]


class MadeUp(Sound):
    async def group(self, number, start, size, play):
        return [replace(episode) for episode in await super().group(number, start, size, play)]


class SameMember(Sound):
    async def group(self, number, start, size, play):
        return list(await asyncio.gather(*(play.episode(start, group=number, member=0) for _ in range(size))))


class AnotherStart(Sound):
    async def group(self, number, start, size, play):
        odd = replace(start, seed=start.seed + 1)
        return await super().group(number, odd, size, play)


class OneAfterTheOther(Sound):
    async def __call__(self, starts, size, play):
        return [
            [await play.episode(start, group=number, member=member) for member in range(size)]
            for number, start in enumerate(starts)
        ]


class GlobalDice(Sound):
    async def group(self, number, start, size, play):
        episodes = [play.episode(start, group=number, member=member) for member in range(size)]
        random.random()
        return list(await asyncio.gather(*episodes))


class Unseeded(Sound):
    async def group(self, number, start, size, play):
        shift = int(np.random.default_rng().integers(1000)) * size
        members = (play.episode(start, group=number, member=shift + member) for member in range(size))
        return list(await asyncio.gather(*members))


class DropsFailures(Sound):
    async def group(self, number, start, size, play):
        return [one for one in await super().group(number, start, size, play) if one.available]


class LeavesThemPlaying(Sound):
    async def group(self, number, start, size, play):
        tasks = [asyncio.ensure_future(play.episode(start, group=number, member=member)) for member in range(size)]
        await asyncio.wait(tasks)
        return [task.result() for task in tasks]


class SwallowsTheEnd(Sound):
    async def __call__(self, starts, size, play):
        try:
            return await super().__call__(starts, size, play)
        except asyncio.CancelledError:
            return []


class RowsOfUnequalLists(Sound):
    def rows(self, episode, advantage):
        return [replace(Row.of(episode, advantage), mask=episode.mask[:-1])]


class RowsTwice(Sound):
    def rows(self, episode, advantage):
        return [Row.of(episode, advantage)] * 2


@dataclass
class HoldsALambda(Sound):
    scale: object = field(default_factory=lambda: lambda value: value)


MUTANTS = [
    (NoneOfTheLast, "groups", "for 3 starts, it returned 2 groups"),
    (TwiceTheFirst, "groups", "it returns an episode twice"),
    (MadeUp, "groups", "an episode that play did not return"),
    (SameMember, "members", "the same (group, member) twice"),
    (AnotherStart, "members", "a start of another group"),
    (OneAfterTheOther, "together", "at most 1 of 12 episodes ran at the same time"),
    (GlobalDice, "repeats", "global state of random"),
    (Unseeded, "repeats", "it returns different episodes"),
    (DropsFailures, "failures", "does not return all episodes"),
    (LeavesThemPlaying, "cancelling", "use asyncio.gather"),
    (SwallowsTheEnd, "cancelling", "do not catch CancelledError"),
    (RowsOfUnequalLists, "rows", "of different lengths"),
    (RowsTwice, "rows", "an episode has"),
    (HoldsALambda, "pickling", "pickle"),
]
ALSO = {NoneOfTheLast: {"failures"}, Unseeded: {"pickling"}}


@pytest.mark.parametrize("part", [Sound, Sound(), "plain"], ids=["class", "object", "name"])
def test_a_sound_part_passes_every_check(part):
    assert check_rollout(part) == list(ROLLOUT_CHECKS)


@pytest.mark.parametrize(("mutant", "check", "words"), MUTANTS, ids=lambda value: getattr(value, "__name__", None))
def test_a_broken_clause_is_named_and_no_other(mutant, check, words):
    found = broken(check_rollout, mutant)
    assert words in found[check]
    assert set(found) <= {check} | ALSO.get(mutant, set())


def test_every_clause_has_a_mutant():
    assert {check for _, check, _ in MUTANTS} == set(ROLLOUT_CHECKS)


def test_a_branch_off_what_was_not_played_is_an_error():
    class BranchesATool(Sound):
        async def group(self, number, start, size, play):
            episodes = await super().group(number, start, size, play)
            long = next(one for one in episodes if 0 in one.mask)
            return [*episodes, *await play.branch(long, long.mask.index(0), 1)]

    assert "not in a turn of the policy" in broken(check_rollout, BranchesATool)["groups"]
