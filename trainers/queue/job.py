"""``Job``: one episode to play, as data that any process of a run can play."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.manner import PLAIN, Manner


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


@runtime_checkable
class Carries(Protocol):
    """A player that can leave off in the middle of an episode, and go on with it later."""

    async def carry(
        self, episode: Episode, *, options: Mapping[str, Any], sampling_seed: int | None, begun: Episode | None
    ) -> Episode:
        """Play one episode into a record; where this is cancelled, it holds what was played until then.

        Args:
            episode: The record, with its group and its seed.
            options: Options of ``reset``.
            sampling_seed: Seeds the policy's draws.
            begun: What was played of it before; ``None`` begins it.
        """
        ...


@runtime_checkable
class Replies(Protocol):
    """A player that can ask the policy for one turn, without an environment."""

    async def reply(self, text: str, *, system: str, group: int, sampling_seed: int | None) -> Episode:
        """Ask it; a failure ends the episode as ``unavailable``.

        Args:
            text: The user's message.
            system: The system message; empty for none.
            group: Number of the episode's group.
            sampling_seed: Seeds the policy's draws.
        """
        ...


@runtime_checkable
class Gives(Protocol):
    """A player that can play turns which somebody else wrote."""

    async def given(self, turns: Sequence[str], *, group: int, seed: int | None, options: Mapping[str, Any]) -> Episode:
        """Play them; a failure, or turns that do not end the episode, end it as ``unavailable``.

        Args:
            turns: The turns as text.
            group: Number of the episode's group.
            seed: Seed of the environment's ``reset``.
            options: Options of ``reset``.
        """
        ...


@dataclass(frozen=True, slots=True)
class Job:
    """One episode to play.

    Attributes:
        group: Number of its group in the step.
        seed: Seed of the environment's ``reset``.
        options: Options of ``reset``.
        sampling_seed: Seeds the policy's draws.
        parent: The episode that it branches off.
        token: First token of its own, where it branches off.
        begun: What was played of it in an earlier step.
        carries: Keep what was played of it where it has to stop.
        shown: Text that the policy is shown in place of the user's message.
        asks: Ask for one turn in answer to this message, without an environment.
        system: The system message before ``asks``.
        manner: How it is played.
        given: The turns that an expert wrote, in place of the policy's.
    """

    group: int
    seed: int | None
    options: Mapping[str, Any] = field(default_factory=dict)
    sampling_seed: int | None = None
    parent: Episode | None = None
    token: int = 0
    begun: Episode | None = None
    carries: bool = False
    shown: str | None = None
    asks: str | None = None
    system: str = ""
    manner: Manner = PLAIN
    given: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Unfinished:
    """What becomes of a job that had to stop.

    Attributes:
        begun: What was played of it; ``None`` for nothing, or nothing that could be kept.
    """

    begun: Episode | None = None


async def perform(job: Job, player: Player, record: Episode) -> Episode:
    """Play a job.

    Args:
        job: The job.
        player: Plays it.
        record: Where a job that ``carries`` is recorded while it is played.

    Raises:
        BranchError: It cannot branch there.
        ConfigurationError: The player cannot reply, or play given turns.
    """
    seed = job.sampling_seed
    if job.given is not None:
        if not isinstance(player, Gives):
            raise ConfigurationError(f"The player {type(player).__name__} cannot play given turns: it has no `given`.")
        return await player.given(job.given, group=job.group, seed=job.seed, options=job.options)
    if job.asks is not None:
        if not isinstance(player, Replies):
            raise ConfigurationError(f"The player {type(player).__name__} cannot ask the policy: it has no `reply`.")
        return await player.reply(job.asks, system=job.system, group=job.group, sampling_seed=seed)
    # A player that can show nothing else is not asked to.
    more: dict[str, Any] = {} if job.shown is None else {"shown": job.shown}
    if job.manner != PLAIN:
        more["manner"] = job.manner
    if job.parent is not None:
        return await player.branch(job.parent, job.token, options=job.options, sampling_seed=seed, **more)
    if job.carries and isinstance(player, Carries):
        return await player.carry(record, options=job.options, sampling_seed=seed, begun=job.begun, **more)
    return await player.episode(group=job.group, seed=job.seed, options=job.options, sampling_seed=seed, **more)
