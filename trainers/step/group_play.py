"""``GroupPlay``: plays the episodes that a rollout part requests, reproducibly from the run's seed.

Covered: seeds of the policy's draws, early stop of a group, the parent of each branch. Not covered: playing an episode
(the player), and choosing the process and the time (``trainers/queue``).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rstar2_env.core.blocking import all_ended
from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.manner import OPEN, PLAIN, Manner
from rstar2_env.core.progress import ReportProgress
from rstar2_env.problems import Problem, ProblemSource, UnknownProblemError
from rstar2_env.rewards.base import RewardJudge

from ..queue.local import LocalRound
from ..queue.requests import EpisodePlayer, PlayRequest, Unfinished
from ..samplers.base import Start

Settled = Callable[[Sequence[Episode | None]], bool]
"""Function that returns whether a group needs no more episodes. In the argument, ``None`` is an unfinished episode."""
EpisodeKey = tuple[int, ...]
"""Identifies an episode of a group: its member number; for a branch also the branching token and the branch's index."""


@dataclass(frozen=True, slots=True)
class GroupPlace:
    """The number of a group that a rollout part plays, and its episodes from earlier steps.

    Attributes:
        number: Number of the group in the step, over all processes and rounds.
        drawn: The step in which the group was first played, and the group's number in that step; both numbers seed the
            policy's draws.
        ended: Episodes of the group that ended in earlier steps, by their key in the group.
        begun: Partial episodes of the group from earlier steps, by their key.
    """

    number: int
    drawn: tuple[int, int]
    ended: Mapping[EpisodeKey, Episode] = field(default_factory=dict)
    begun: Mapping[EpisodeKey, Episode] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Origin:
    """An episode (kept alive, so that Python's ``id`` of it stays valid), its group, start, key, parent and prompt."""

    episode: Episode
    group: int
    start: Start
    key: EpisodeKey
    parent: tuple[Episode, int] | None = None
    shown: str | None = None


class GroupPlay:
    """Plays the episodes that a rollout part requests in one call, for all of its groups; see ``Play``.

    Args:
        player: Plays single episodes.
        seed: Seed of the run.
        step: Number of steps collected so far.
        first: Number of the first group in the step, over all processes and rounds.
        size: Episodes requested from the part for each group.
        settled: Returns whether the rest of a group may be cancelled; ``None`` plays all episodes to the end.
        places: The groups, if their numbers are not consecutive from ``first``.
        queue: The round of the queue in which episodes wait; ``None`` plays them in this process.
        carries: Keep the partial episode if an episode has to stop.
        problems: The environment's source of problems, if it has one.
        judge: See ``Play``.

    Attributes:
        report: Receives the number of finished episodes and the total number.
    """

    report: ReportProgress

    def __init__(
        self,
        player: EpisodePlayer,
        *,
        seed: int,
        step: int,
        first: int,
        size: int,
        settled: Settled | None = None,
        places: Sequence[GroupPlace] = (),
        queue: LocalRound | None = None,
        carries: bool = False,
        problems: ProblemSource | None = None,
        judge: RewardJudge | None = None,
    ) -> None:
        self.step, self.judge = step, judge
        self.rng = np.random.default_rng(np.random.SeedSequence([seed, step, first], spawn_key=(1,)))
        self._player, self._seed, self._first, self._size, self._settled = player, seed, first, size, settled
        self._places, self._queue, self._carries = places, queue or LocalRound(player), carries
        self._problems = problems
        self._ended: dict[int, dict[EpisodeKey, Episode]] = {}
        self._running: dict[int, set[asyncio.Task[Episode | Unfinished]]] = {}
        self._stopped: set[int] = set()
        self._reported: set[int] = set()
        self._origins: dict[int, _Origin] = {}
        self._begun: dict[int, dict[EpisodeKey, Episode]] = {}
        self._unfinished: set[int] = set()
        self.report = lambda done, total, note="": None

    def draws(self, group: int, *words: int) -> np.random.Generator:
        """Return a random generator for a group, independent of other groups; see ``Play``."""
        entropy = [self._seed, *self._place(group).drawn, *words]
        return np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(4,)))

    async def episode(
        self, start: Start, *, group: int, member: int, shown: str | None = None, manner: Manner = PLAIN
    ) -> Episode:
        """Play one episode to its end; see ``Play``."""
        request = PlayRequest(group, start.seed, start.options, shown=shown, manner=manner, carries=self._carries)
        return await self._play(start, (member,), request)

    async def branch(self, episode: Episode, token: int, n: int, *, manner: Manner = PLAIN) -> list[Episode]:
        """Play ``n`` episodes that start with tokens of ``episode`` and continue differently; see ``Play``."""
        origin = self._origins.get(id(episode))
        if origin is None:
            raise ConfigurationError(
                "A rollout part can branch only episodes that it played in the same call: branch one of these."
            )
        start, shown = origin.start, origin.shown
        request = PlayRequest(
            origin.group, start.seed, start.options, parent=episode, token=token, shown=shown, manner=manner
        )
        return await all_ended(self._play(start, (*origin.key, token, index), request) for index in range(n))

    async def reply(self, text: str, *, group: int, member: int, system: str = "") -> Episode:
        """Sample one turn of the policy without an environment; see ``Play``."""
        return await self._play(Start(0), (member,), PlayRequest(group, None, asks=text, system=system))

    async def given(self, start: Start, turns: Sequence[str], *, group: int, member: int) -> Episode:
        """Play an episode with given turns; see ``Play``."""
        return await self._play(start, (member,), PlayRequest(group, start.seed, start.options, given=tuple(turns)))

    def problem(self, problem_id: str) -> Problem | None:
        """Return the problem with an id; see ``Play``."""
        try:
            return None if self._problems is None or not problem_id else self._problems.get(problem_id)
        except UnknownProblemError:
            return None

    async def score(self, prompt_ids: Sequence[int], ids: Sequence[int]) -> list[float]:
        """Return the policy's log-probability of every token of ``ids``; see ``Play``."""
        return await self._player.score(prompt_ids, ids)

    def encode(self, text: str) -> list[int]:
        """Return the token ids of a text, without special tokens; see ``LanguageModel`` of the rewards."""
        return self._player.encode(text)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of token ids; see ``LanguageModel`` of the rewards."""
        return self._player.decode(ids)

    def name_parents(self, groups: Sequence[Sequence[Episode]]) -> None:
        """Set ``parent`` of each branch: the parent's position in its group, and the number of tokens that they share.

        If the rollout part did not return the parent, ``parent`` names the earlier episode of the group that shares the
        most tokens with the branch. Two episodes share tokens if one branched off the other or both branched off a
        third; the position is -1 if no earlier episode does.

        Args:
            groups: The groups that the rollout part returned.
        """
        for group in groups:
            places = {id(episode): place for place, episode in enumerate(group)}
            shared = [self._shared(episode) for episode in group]
            for place, episode in enumerate(group):
                origin = self._origins.get(id(episode))
                if origin is None or origin.parent is None:
                    continue
                parent, token = places.get(id(origin.parent[0]), -1), origin.parent[1]
                if parent < 0:
                    near = [(_common(shared[place], shared[other]), -other) for other in range(place)]
                    most, other = max(near, default=(0, 0))
                    parent, token = (-other, most) if most else (-1, token)
                episode.parent = (parent, token)

    def carried_over(self, group: int) -> GroupPlace | None:
        """Return an unfinished group with its partial episodes; ``None`` if the group has finished.

        Args:
            group: Position of the group among the starts that the rollout part was given.
        """
        if group not in self._unfinished:
            return None
        place = self._place(group)
        own = [origin for origin in self._origins.values() if origin.group == group]
        ended = {origin.key: origin.episode for origin in own if not origin.episode.cancelled}
        return GroupPlace(place.number, place.drawn, ended, self._begun.get(group, {}))

    def _shared(self, episode: Episode) -> dict[int, float]:
        """Return how many tokens an episode shares with each ancestor, and infinity for the episode itself.

        The parent that an episode branched off is an ancestor, and so are the parent's ancestors. The keys are the
        ``id`` of the episodes.
        """
        found, least = {id(episode): math.inf}, math.inf
        origin = self._origins.get(id(episode))
        while origin is not None and origin.parent is not None:
            episode, token = origin.parent
            found[id(episode)] = least = min(least, token)
            origin = self._origins.get(id(episode))
        return found

    def _place(self, group: int) -> GroupPlace:
        if self._places:
            return self._places[group]
        return GroupPlace(self._first + group, (self.step, self._first + group))

    async def _play(self, start: Start, key: EpisodeKey, request: PlayRequest) -> Episode:
        """Play an episode, unless an earlier step already played it to its end; return the episode.

        ``request.group`` is the position of the episode's group among the starts that the rollout part was given.
        """
        group = request.group
        place = self._place(group)
        episode = place.ended.get(key)
        if episode is None:
            # Member 3 of group 7 draws the same on any number of processes.
            entropy = np.random.SeedSequence([self._seed, *place.drawn, *key])
            seed = int(entropy.generate_state(1, np.uint64)[0])
            request = replace(request, group=place.number, sampling_seed=seed, begun=place.begun.get(key))
            episode = None if group in self._stopped else await self._played(group, key, request)
        if episode is None:
            episode = Episode(seed=request.seed)
            episode.void("cancelled")
        episode.group = place.number
        parent = None if request.parent is None else (request.parent, request.token)
        done = len(self._origins) + 1
        self.report(done, max(done, self._size * (len(self._places) or 1)))
        self._origins[id(episode)] = _Origin(episode, group, start, key, parent, request.shown)
        by_policy = request.asks is None and request.given is None
        if by_policy and episode.end not in ("cancelled", OPEN):
            self._ended.setdefault(group, {})[key] = episode
            self._stop_if_settled(group)
        return episode

    async def _played(self, group: int, key: EpisodeKey, request: PlayRequest) -> Episode | None:
        """Play an episode in a separate task; return ``None`` if it was stopped before its end.

        Args:
            group: Position of the group among the starts that the rollout part was given.
            key: Identifies the episode in its group.
            request: The episode to play.
        """
        task = asyncio.ensure_future(self._queue.play(request))
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
                self._begun.setdefault(group, {})[key] = played.begun
        return None

    def _stop_if_settled(self, group: int) -> None:
        """Cancel the remaining episodes of a group that needs no more; report a finished group to the queue."""
        ended = self._ended[group]
        settled = self._settled if group not in self._stopped else None
        if settled is not None and settled(self._in_order(ended)):
            self._stopped.add(group)
            for task in self._running.get(group, ()):
                task.cancel()
        if group not in self._reported and (group in self._stopped or len(ended) >= self._size):
            self._reported.add(group)
            self._queue.group_ended()

    def _in_order(self, ended: Mapping[EpisodeKey, Episode]) -> list[Episode | None]:
        """Sort a group for its selector: first the unbranched episodes by member number, then the branches.

        A missing unbranched episode is ``None``. Since branches count towards the size of the group, each branch
        removes one ``None`` from the end of the unbranched episodes, if there is one.
        """
        whole = [ended.get((member,)) for member in range(self._size)]
        branches = [episode for key, episode in sorted(ended.items()) if len(key) > 1]
        missing = len(branches)
        while missing and whole and whole[-1] is None:
            whole.pop()
            missing -= 1
        return [*whole, *branches]


def _common(shared: Mapping[int, float], other: Mapping[int, float]) -> int:
    """Return the number of tokens that two episodes share through branching.

    Args:
        shared: Result of ``GroupPlay._shared`` for the first episode.
        other: Its result for the second episode.
    """
    return max((int(min(tokens, other[each])) for each, tokens in shared.items() if each in other), default=0)
