"""``GroupPlay``: what a rollout part plays with, over a player; every episode is reproducible from the run's seed.

Covered: seeds of the policy's draws, early stop of a group, where a branch comes from. Not covered: how an episode is
played, which is the player's; where and when, which is the queue's (``episode_queue``).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from rstar2_env.core.blocking import all_ended
from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.manner import OPEN, PLAIN, Manner
from rstar2_env.problems import Problem, ProblemSource, UnknownProblemError
from rstar2_env.rewards.base import RewardJudge

from ..queue.job import Job, Unfinished, perform
from ..queue.job import Player as PlaysEpisodes
from ..samplers.base import Start

Settled = Callable[[Sequence[Episode | None]], bool]
"""Whether a group needs no more episodes, given those that have ended (``None``: still running)."""
Words = tuple[int, ...]
"""Which episode of a group it is: its member; of a branch, also where it branched off, and its number there."""


class Player(PlaysEpisodes, Protocol):
    """Plays single episodes; ``rstar2_env.rollout.Player`` is one."""

    async def score(self, prompt_ids: Sequence[int], ids: Sequence[int]) -> list[float]:
        """Return the log-probability of each of ``ids`` after ``prompt_ids`` and those before it."""
        ...

    def encode(self, text: str) -> list[int]:
        """The token ids of a text as it stands."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """The text of token ids."""
        ...

    def check(self, episodes: Sequence[Episode]) -> None:
        """Raise if too many of the episodes ended as ``unavailable``."""
        ...


class Queue(Protocol):
    """Where episodes wait until they are played."""

    async def play(self, job: Job) -> Episode | Unfinished:
        """Have one played; cancelling this stops it."""
        ...

    def group_ended(self) -> None:
        """All episodes of a group have ended."""
        ...


class OwnQueue:
    """The queue of one process, which plays as many at the same time as its player allows.

    Args:
        player: Plays them.
    """

    def __init__(self, player: PlaysEpisodes) -> None:
        self._player, self._room = player, asyncio.Semaphore(player.max_in_flight)

    async def play(self, job: Job) -> Episode | Unfinished:
        """See ``Queue``."""
        async with self._room:
            return await perform(job, self._player, Episode(group=job.group, seed=job.seed))

    def group_ended(self) -> None:
        """See ``Queue``."""


@dataclass(frozen=True, slots=True)
class Place:
    """One group of a call of a rollout part, where it is not simply the next one of its step.

    Attributes:
        number: Its number in the step, over all processes and rounds.
        drawn: The step and the number in it in which it was first played, of which the policy's draws depend.
        ended: Its episodes that ended in earlier steps.
        begun: What was played of others in earlier steps.
    """

    number: int
    drawn: tuple[int, int]
    ended: Mapping[Words, Episode] = field(default_factory=dict)
    begun: Mapping[Words, Episode] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Origin:
    """Where an episode comes from: itself (so that its ``id`` stays), its group, start, seed, parent and prompt."""

    episode: Episode
    group: int
    start: Start
    words: Words
    parent: tuple[Episode, int] | None = None
    shown: str | None = None


class GroupPlay:
    """Plays the episodes of the groups of one call of a rollout part; see ``Play``.

    Args:
        player: Plays single episodes.
        seed: Seed of the run.
        step: Number of optimizer steps so far.
        first: Number in the step, over all processes and rounds, of the first of these groups.
        size: Episodes that the part is asked for in each group.
        settled: Tells about a group whether the rest of its episodes may be cancelled; ``None`` plays all to the end.
        places: What the groups are, where they do not follow one another from ``first`` on.
        queue: Where episodes wait until they are played; ``None`` plays them in this process.
        carries: Keep what was played of an episode that has to stop.
        problems: The environment's source of problems, where it has one.
        judge: See ``Play``.
    """

    def __init__(
        self,
        player: Player,
        *,
        seed: int,
        step: int,
        first: int,
        size: int,
        settled: Settled | None = None,
        places: Sequence[Place] = (),
        queue: Queue | None = None,
        carries: bool = False,
        problems: ProblemSource | None = None,
        judge: RewardJudge | None = None,
    ) -> None:
        self.step, self.judge = step, judge
        self.rng = np.random.default_rng(np.random.SeedSequence([seed, step, first], spawn_key=(1,)))
        self._player, self._seed, self._first, self._size, self._settled = player, seed, first, size, settled
        self._places, self._queue, self._carries = places, queue or OwnQueue(player), carries
        self._problems = problems
        self._ended: dict[int, dict[Words, Episode]] = {}
        self._running: dict[int, set[asyncio.Task[Episode | Unfinished]]] = {}
        self._stopped: set[int] = set()
        self._told: set[int] = set()
        self._origins: dict[int, _Origin] = {}
        self._begun: dict[int, dict[Words, Episode]] = {}
        self._unfinished: set[int] = set()

    def draws(self, group: int, *words: int) -> np.random.Generator:
        """See ``Play``."""
        entropy = [self._seed, *self._place(group).drawn, *words]
        return np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(4,)))

    async def episode(
        self, start: Start, *, group: int, member: int, shown: str | None = None, manner: Manner = PLAIN
    ) -> Episode:
        """See ``Play``."""
        place, words = self._place(group), (member,)
        episode = place.ended.get(words)
        if episode is None:
            job = replace(self._job(place, start, words), shown=shown, manner=manner)
            episode = await self._run(group, words, job)
        self._ends(episode, _Origin(episode, group, start, words, shown=shown))
        return episode

    async def branch(self, episode: Episode, token: int, n: int, *, manner: Manner = PLAIN) -> list[Episode]:
        """See ``Play``."""
        origin = self._origins.get(id(episode))
        if origin is None:
            raise ConfigurationError("A rollout part can branch only episodes that it played in the same call.")
        place = self._place(origin.group)

        async def one(index: int) -> Episode:
            words = (*origin.words, token, index)
            child = place.ended.get(words)
            if child is None:
                job = self._job(place, origin.start, words, parent=episode, token=token)
                child = await self._run(origin.group, words, replace(job, shown=origin.shown, manner=manner))
            self._ends(child, _Origin(child, origin.group, origin.start, words, (episode, token), origin.shown))
            return child

        return await all_ended(map(one, range(n)))

    async def reply(self, text: str, *, group: int, member: int, system: str = "") -> Episode:
        """See ``Play``."""
        place, words = self._place(group), (member,)
        episode = place.ended.get(words)
        if episode is None:
            job = replace(self._job(place, Start(0), words), seed=None, asks=text, system=system, carries=False)
            episode = await self._run(group, words, job)
        episode.group = place.number
        self._origins[id(episode)] = _Origin(episode, group, Start(0), words)
        return episode

    async def given(self, start: Start, turns: Sequence[str], *, group: int, member: int) -> Episode:
        """See ``Play``."""
        place, words = self._place(group), (member,)
        episode = place.ended.get(words)
        if episode is None:
            job = replace(self._job(place, start, words), given=tuple(turns), carries=False)
            episode = await self._run(group, words, job)
        episode.group = place.number
        self._origins[id(episode)] = _Origin(episode, group, start, words)
        return episode

    def problem(self, problem_id: str) -> Problem | None:
        """See ``Play``."""
        try:
            return None if self._problems is None or not problem_id else self._problems.get(problem_id)
        except UnknownProblemError:
            return None

    async def score(self, prompt_ids: Sequence[int], ids: Sequence[int]) -> list[float]:
        """See ``Play``."""
        return await self._player.score(prompt_ids, ids)

    def encode(self, text: str) -> list[int]:
        """See ``LanguageModel`` of the rewards."""
        return self._player.encode(text)

    def decode(self, ids: Sequence[int]) -> str:
        """See ``LanguageModel`` of the rewards."""
        return self._player.decode(ids)

    def name_parents(self, groups: Sequence[Sequence[Episode]]) -> None:
        """Write into each branch the position of its parent in the group that the part returned.

        Where the part left that out, it is the episode before it in the group that shares most with it through those
        that were left out, and -1 if none does.

        Args:
            groups: What the part returned.
        """
        for group in groups:
            places = {id(episode): place for place, episode in enumerate(group)}
            lines = [self._line(episode) for episode in group]
            for place, episode in enumerate(group):
                origin = self._origins.get(id(episode))
                if origin is None or origin.parent is None:
                    continue
                parent, token = places.get(id(origin.parent[0]), -1), origin.parent[1]
                if parent < 0:
                    near = [(_shared(lines[place], lines[other]), -other) for other in range(place)]
                    most, other = max(near, default=(0, 0))
                    parent, token = (-other, most) if most else (-1, token)
                episode.parent = (parent, token)

    def _line(self, episode: Episode) -> dict[int, float]:
        """Of an episode and all that it comes from, how many tokens it has of each."""
        found, least = {id(episode): math.inf}, math.inf
        origin = self._origins.get(id(episode))
        while origin is not None and origin.parent is not None:
            episode, token = origin.parent
            found[id(episode)] = least = min(least, token)
            origin = self._origins.get(id(episode))
        return found

    def _ends(self, episode: Episode, origin: _Origin) -> None:
        """An episode was played: remember where it comes from, and stop its group if that needs no more."""
        episode.group = self._place(origin.group).number
        self._origins[id(episode)] = origin
        if episode.end not in ("cancelled", OPEN):
            self._ended.setdefault(origin.group, {})[origin.words] = episode
            self._stop_if_settled(origin.group)

    def left_off(self, group: int) -> Place | None:
        """What is there of a group that could not be played to its end; ``None`` of one that was.

        Args:
            group: Position of the group among the starts of the call.
        """
        if group not in self._unfinished:
            return None
        place = self._place(group)
        own = [origin for origin in self._origins.values() if origin.group == group]
        ended = {one.words: one.episode for one in own if not one.episode.cancelled}
        return Place(place.number, place.drawn, ended, self._begun.get(group, {}))

    def _place(self, group: int) -> Place:
        if self._places:
            return self._places[group]
        return Place(self._first + group, (self.step, self._first + group))

    def _job(self, place: Place, start: Start, words: Words, *, parent: Episode | None = None, token: int = 0) -> Job:
        # Member 3 of group 7 draws the same on any number of processes.
        entropy = np.random.SeedSequence([self._seed, *place.drawn, *words])
        return Job(
            group=place.number,
            seed=start.seed,
            options=start.options,
            sampling_seed=int(entropy.generate_state(1, np.uint64)[0]),
            parent=parent,
            token=token,
            begun=place.begun.get(words),
            carries=self._carries and parent is None,
        )

    async def _run(self, group: int, words: Words, job: Job) -> Episode:
        """Play in a task that can be cancelled alone; a cancelled episode if its group needed it no longer."""
        episode = None if group in self._stopped else await self._played(group, words, job)
        if episode is None:
            episode = Episode(group=job.group, seed=job.seed)
            episode.void("cancelled")
        return episode

    async def _played(self, group: int, words: Words, job: Job) -> Episode | None:
        task = asyncio.ensure_future(self._queue.play(job))
        running = self._running.setdefault(group, set())
        running.add(task)
        try:
            played = await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if group not in self._stopped or (current is not None and current.cancelling()):
                raise
            return None
        finally:
            running.discard(task)
        if isinstance(played, Episode):
            return played
        if group not in self._stopped:
            self._unfinished.add(group)
            if played.begun is not None:
                self._begun.setdefault(group, {})[words] = played.begun
        return None

    def _stop_if_settled(self, group: int) -> None:
        ended = self._ended[group]
        settled = self._settled if group not in self._stopped else None
        if settled is not None and settled(self._in_order(ended)):
            self._stopped.add(group)
            for task in self._running.get(group, ()):
                task.cancel()
        if group not in self._told and (group in self._stopped or len(ended) >= self._size):
            self._told.add(group)
            self._queue.group_ended()

    def _in_order(self, ended: Mapping[Words, Episode]) -> list[Episode | None]:
        """The episodes of a group as its selector will see them: by their numbers, then branches, then none."""
        whole = [ended.get((member,)) for member in range(self._size)]
        branches = [episode for words, episode in sorted(ended.items()) if len(words) > 1]
        missing = len(branches)
        while missing and whole and whole[-1] is None:
            whole.pop()
            missing -= 1
        return [*whole, *branches]


def _shared(line: Mapping[int, float], other: Mapping[int, float]) -> int:
    """How many tokens two episodes share through those that both come from."""
    return max((int(min(tokens, other[each])) for each, tokens in line.items() if each in other), default=0)
