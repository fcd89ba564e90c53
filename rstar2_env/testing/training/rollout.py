"""``check_rollout``: checks that a rollout part plays every group, all at the same time, and stops when cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rstar2_env.core.episode import Episode
from rstar2_env.core.options.parts import PartSpec
from rstar2_env.core.row import Row
from rstar2_env.testing.harness import require
from rstar2_env.testing.randomness import untouched
from rstar2_env.testing.runner import by_name
from rstar2_env.testing.training.lookup import check_part, pickled, samplers
from rstar2_env.testing.training.plain_play import PlainPlay

_GROUPS, _SIZE = 3, 4
_PATIENCE_S = 30.0


@dataclass(frozen=True, slots=True)
class RolloutHarness:
    """One rollout part under test.

    Attributes:
        make: Function that makes a new instance of the part.
    """

    make: Callable[[], Any]

    def starts(self, count: int = _GROUPS) -> list[Any]:
        """Return one start, a problem and a seed, for each group."""
        return [
            samplers.Start(seed=100 + number, options={"problem_id": f"problem-{number}"}) for number in range(count)
        ]

    def play(self, play: PlainPlay, starts: Sequence[Any], size: int = _SIZE) -> Any:
        """Return the groups, of at least ``size`` episodes each, that a new instance of the part plays."""
        return asyncio.run(asyncio.wait_for(self.make()(starts, size, play), _PATIENCE_S))


def groups(harness: RolloutHarness) -> None:
    """Check that the part returns, for each start in order, a group of at least as many episodes as were requested."""
    for count, size in ((_GROUPS, _SIZE), (1, 2), (0, _SIZE)):
        starts, play = harness.starts(count), PlainPlay()
        found: Any = harness.play(play, starts, size)
        require(isinstance(found, list), f"it returned {type(found).__name__}, not a list with a list for each start")
        require(len(found) == count, f"for {count} starts, it returned {len(found)} groups")
        for number, (start, group) in enumerate(zip(starts, found, strict=True)):
            whole = isinstance(group, list) and all(isinstance(one, Episode) for one in group)
            require(whole, f"group {number} is {group!r:.80}; return a list of episodes")
            require(len(group) >= size, f"group {number} has {len(group)} episodes; at least {size} were requested")
            strangers = {one.problem_id for one in group} - {start.problem_id, ""}  # "" for replies
            require(not strangers, f"group {number} has episodes of another start: {', '.join(sorted(strangers))}")
        every = [id(one) for group in found for one in group]
        require(len(set(every)) == len(every), "it returns an episode twice")
        require(set(every) <= set(map(id, play.played)), "it returns an episode that play did not return")


def members(harness: RolloutHarness) -> None:
    """Check that the episodes of a group have different member numbers, and so different random draws."""
    play = PlainPlay()
    harness.play(play, harness.starts())
    require(len(set(play.asked)) == len(play.asked), f"it requested the same (group, member) twice: {play.asked}")
    right = all(play.starts[group] == start for group, start in enumerate(harness.starts()) if group in play.starts)
    require(right, "it passed a start of another group")


def together(harness: RolloutHarness) -> None:
    """Check that all groups play at the same time: the part awaits them together, not one after the other."""
    play = PlainPlay()
    harness.play(play, harness.starts())
    told = f"at most {play.most_in_flight} of {len(play.asked)} episodes ran at the same time; use asyncio.gather"
    require(play.most_in_flight >= _GROUPS, told)


def repeats(harness: RolloutHarness) -> None:
    """Check that the episodes depend only on ``play``: the part must draw from ``play.rng``."""
    first, again = PlainPlay(seed=4), PlainPlay(seed=4)
    with untouched():
        one = harness.play(first, harness.starts())
    other = harness.play(again, harness.starts())
    require(one == other, "if it is called again with the same play.rng, it returns different episodes")


def failures(harness: RolloutHarness) -> None:
    """Check that ``unavailable`` episodes are returned like all other episodes, and do not stop the rollout."""
    for failing in ([(0, 0)], [(1, member) for member in range(64)]):
        found = harness.play(PlainPlay(failing=failing), harness.starts())
        require(len(found) == _GROUPS, "if some episodes are unavailable, it does not return all groups")
        whole = all(len(group) >= _SIZE for group in found)
        require(whole, "if some episodes are unavailable, it does not return all episodes")


def cancelling(harness: RolloutHarness) -> None:
    """Check that when the part is cancelled, it cancels every episode that it plays, and leaves none running."""

    async def cancelled() -> PlainPlay:
        play = PlainPlay()
        playing = asyncio.ensure_future(harness.make()(harness.starts(), _SIZE, play))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        playing.cancel()
        ended = await asyncio.gather(playing, return_exceptions=True)
        require(
            isinstance(ended[0], asyncio.CancelledError),
            "after it was cancelled, it continues; do not catch CancelledError",
        )
        for _ in range(20):
            await asyncio.sleep(0)
        return play

    play = asyncio.run(asyncio.wait_for(cancelled(), _PATIENCE_S))
    require(
        not play.in_flight,
        f"after it was cancelled, {play.in_flight} of its episodes are still played; use asyncio.gather",
    )
    require(
        not play.played,
        f"after it was cancelled, {len(play.played)} episodes were played to their end; use asyncio.gather",
    )


def rows(harness: RolloutHarness) -> None:
    """Check the rows from ``rows``, if defined: lists of equal length in each row, and at least one policy token."""
    part = harness.make()
    if not hasattr(part, "rows"):
        return
    for group in harness.play(PlainPlay(), harness.starts()):
        for episode in group:
            tokens = len(episode.completion_ids)
            for advantage in (0.5, np.linspace(-1, 1, tokens)):
                made: Any = part.rows(episode, advantage)
                right = isinstance(made, list) and all(isinstance(one, Row) for one in made)
                require(right, f"`rows` returned {made!r:.80}; return a list of Row")
                for one in made:
                    lengths = {len(one.completion_ids), len(one.mask), len(one.logprobs)}
                    lengths |= {np.shape(one.advantage)[0]} if np.ndim(one.advantage) else set()
                    require(len(lengths) == 1, f"a row has lists and an advantage of different lengths: {lengths}")
                total = sum(one.policy_tokens for one in made)
                most = episode.policy_tokens
                require(0 < total <= most, f"an episode has {most} policy tokens, but its rows have {total}")


def pickling(harness: RolloutHarness) -> None:
    """Check that a pickled copy of the part plays the same episodes."""
    one = asyncio.run(pickled(harness.make())(harness.starts(), _SIZE, PlainPlay(seed=2)))
    require(one == harness.play(PlainPlay(seed=2), harness.starts()), "its unpickled copy returns different episodes")


ROLLOUT_CHECKS = by_name(groups, members, together, repeats, failures, cancelling, rows, pickling)
"""Checks by name; the first line of a check's docstring describes the check."""


def check_rollout(rollout: PartSpec | object, *, skip: Collection[str] = (), **options: Any) -> list[str]:
    """Check a rollout part against its contract (docs/part-interfaces.md). Needs no pytest, no torch and no model.

    Args:
        rollout: A name as a recipe writes it (``"plain"``, ``"./mine.py:Name"``), a class, or the part itself, an
            object or a coroutine function.
        skip: Names of checks to leave out; see ``rstar2_env.testing.ROLLOUT_CHECKS``.
        **options: Options of the part, when it is given as a name or a class.

    Returns:
        The names of the checks that were made.

    Raises:
        ConformanceError: The part breaks the contract; the message lists every clause that it breaks.
        UnknownNameError: There is no part with this name, or ``skip`` contains a name that is not a check.
        ConfigurationError: An option is unknown or invalid.
    """
    return check_part("rollout", rollout, options, ROLLOUT_CHECKS, RolloutHarness, skip=skip)
