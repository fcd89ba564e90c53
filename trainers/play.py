"""``GroupPlay``: what a rollout part plays with, over a player; every episode is reproducible from the run's seed.

Covered: seeds of the policy's draws, the limit on episodes in flight, early stop of a group, where a branch comes from.
Not covered: how an episode is played, which is the player's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError

from .samplers.base import Start

Settled = Callable[[Sequence[Episode | None]], bool]
"""Whether a group needs no more episodes, given those that have ended (``None``: still running)."""


class Player(Protocol):
    """Plays single episodes; ``rstar2_env.rollout.Player`` is one."""

    @property
    def max_in_flight(self) -> int:
        """Largest number of episodes to play at the same time."""
        ...

    async def episode(
        self, *, group: int, seed: int | None, options: Mapping[str, Any], sampling_seed: int | None
    ) -> Episode:
        """Play one episode; a failure ends it as ``unavailable``."""
        ...

    async def branch(
        self, parent: Episode, token: int, *, options: Mapping[str, Any], sampling_seed: int | None
    ) -> Episode:
        """Play one episode that shares the first ``token`` tokens of ``parent.completion_ids``."""
        ...

    async def score(self, prompt_ids: Sequence[int], ids: Sequence[int]) -> list[float]:
        """Return the log-probability of each of ``ids`` after ``prompt_ids`` and those before it."""
        ...

    def check(self, episodes: Sequence[Episode]) -> None:
        """Raise if too many of the episodes ended as ``unavailable``."""
        ...


@dataclass(frozen=True, slots=True)
class _Origin:
    """Where an episode comes from: itself (so that its ``id`` stays its own), its group, start, seed and parent."""

    episode: Episode
    group: int
    start: Start
    words: tuple[int, ...]
    parent: tuple[Episode, int] | None = None


class GroupPlay:
    """Plays the episodes of the groups of one call of a rollout part; see ``Play``.

    Args:
        player: Plays single episodes.
        seed: Seed of the run.
        step: Number of optimizer steps so far.
        first: Number in the step, over all processes and rounds, of the first of these groups.
        size: Episodes that the part is asked for in each group.
        settled: Tells about a group whether the rest of its episodes may be cancelled; ``None`` plays all to the end.
    """

    def __init__(
        self, player: Player, *, seed: int, step: int, first: int, size: int, settled: Settled | None = None
    ) -> None:
        self.step = step
        self.rng = np.random.default_rng(np.random.SeedSequence([seed, step, first], spawn_key=(1,)))
        self._player, self._seed, self._first, self._size, self._settled = player, seed, first, size, settled
        self._room = asyncio.Semaphore(player.max_in_flight)
        self._ended: dict[int, dict[int, Episode]] = {}
        self._running: dict[int, set[asyncio.Task[Episode]]] = {}
        self._stopped: set[int] = set()
        self._origins: dict[int, _Origin] = {}

    async def episode(self, start: Start, *, group: int, member: int) -> Episode:
        """See ``Play``."""
        number, words = self._first + group, (member,)
        episode = await self._run(
            group,
            lambda: self._player.episode(
                group=number, seed=start.seed, options=start.options, sampling_seed=self._drawn(number, words)
            ),
        )
        if episode is None:
            episode = Episode(group=number, seed=start.seed)
            episode.void("cancelled")
        self._origins[id(episode)] = _Origin(episode, group, start, words)
        if episode.end != "cancelled":
            self._ended.setdefault(group, {})[member] = episode
            self._stop_if_settled(group)
        return episode

    async def branch(self, episode: Episode, token: int, n: int) -> list[Episode]:
        """See ``Play``."""
        origin = self._origins.get(id(episode))
        if origin is None:
            raise ConfigurationError("A rollout part can branch only episodes that it played in the same call.")
        number = self._first + origin.group

        async def one(index: int) -> Episode:
            words = (*origin.words, token, index)
            child = await self._run(
                origin.group,
                lambda: self._player.branch(
                    episode, token, options=origin.start.options, sampling_seed=self._drawn(number, words)
                ),
            )
            if child is None:
                child = Episode(group=number, seed=origin.start.seed)
                child.void("cancelled")
            self._origins[id(child)] = _Origin(child, origin.group, origin.start, words, (episode, token))
            return child

        return list(await asyncio.gather(*map(one, range(n))))

    async def score(self, prompt_ids: Sequence[int], ids: Sequence[int]) -> list[float]:
        """See ``Play``."""
        return await self._player.score(prompt_ids, ids)

    def name_parents(self, groups: Sequence[Sequence[Episode]]) -> None:
        """Write into each branch the position of its parent in the group that the part returned; -1 if it left it out.

        Args:
            groups: What the part returned.
        """
        for group in groups:
            places = {id(episode): place for place, episode in enumerate(group)}
            for episode in group:
                origin = self._origins.get(id(episode))
                if origin is not None and origin.parent is not None:
                    episode.parent = (places.get(id(origin.parent[0]), -1), origin.parent[1])

    def _drawn(self, number: int, words: tuple[int, ...]) -> int:
        """Seed of the policy's draws in an episode; member 3 of group 7 is the same on any number of processes."""
        entropy = np.random.SeedSequence([self._seed, self.step, number, *words])
        return int(entropy.generate_state(1, np.uint64)[0])

    async def _run(self, group: int, play: Callable[[], Coroutine[Any, Any, Episode]]) -> Episode | None:
        """Play in a task that can be cancelled alone; ``None`` if its group needed it no longer."""

        async def in_room() -> Episode:
            async with self._room:
                return await play()

        if group in self._stopped:
            return None
        task = asyncio.create_task(in_room())
        running = self._running.setdefault(group, set())
        running.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if group not in self._stopped or (current is not None and current.cancelling()):
                raise
            return None
        finally:
            running.discard(task)

    def _stop_if_settled(self, group: int) -> None:
        if self._settled is None or group in self._stopped:
            return
        ended = self._ended[group]
        if self._settled([ended.get(member) for member in range(self._size)]):
            self._stopped.add(group)
            for task in self._running[group]:
                task.cancel()
