"""What a rollout part is: it plays the episodes of each group, through what ``Play`` offers.

A part decides which episodes are played, which are branched off others, and in which order; it neither scores nor
selects. Not covered: how an episode is played, which is the player's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from rstar2_env.core.episode import Episode
from rstar2_env.core.own_code import Shape, is_called_with
from rstar2_env.core.registry import Registry
from rstar2_env.core.row import Row

from ..samplers.base import Start


class Play(Protocol):
    """What a rollout part plays with; made anew for every call of the part.

    Attributes:
        rng: Source of the part's random draws; different for every step, round of refill and process.
        step: Number of optimizer steps so far.
    """

    rng: np.random.Generator
    step: int

    async def episode(self, start: Start, *, group: int, member: int) -> Episode:
        """Play one episode to its end. A failure ends it as ``unavailable`` and raises nothing.

        Args:
            start: Where it starts.
            group: Position of its group among the starts of this call.
            member: Number of the episode in its group; with the group, it seeds the policy's draws.
        """
        ...

    async def branch(self, episode: Episode, token: int, n: int) -> list[Episode]:
        """Play ``n`` episodes that begin as ``episode`` did and go on differently.

        The environment is brought to the same place by replaying the turns before that token, which demands that it is
        deterministic for its seed and actions, as its contract says.

        Args:
            episode: An episode of this call.
            token: Number of tokens of ``completion_ids`` that the branches share with it. It must lie in or right
                before a turn of the policy.
            n: Number of branches.

        Raises:
            BranchError: There is no turn of the policy at that token, or the replay shows something else than the
                episode did.
        """
        ...

    async def score(self, prompt_ids: Sequence[int], ids: Sequence[int]) -> list[float]:
        """Return the policy's log-probability of each of ``ids`` after ``prompt_ids`` and those before it.

        Raises:
            ConfigurationError: The engine cannot score given tokens.
        """
        ...


class Rollout(Protocol):
    """Plays the episodes of each group."""

    async def __call__(self, starts: Sequence[Start], size: int, play: Play) -> list[list[Episode]]:
        """Return the episodes of each group, in the order of ``starts``.

        Args:
            starts: Where the groups start.
            size: Episodes to play for each of them.
            play: Plays them.
        """
        ...


@runtime_checkable
class MakesRows(Protocol):
    """Optional method of a rollout part whose episodes do not train as one row each."""

    def rows(self, episode: Episode, advantage: float | NDArray[np.float64]) -> list[Row]:
        """Return the rows in which an episode trains.

        Args:
            episode: A selected episode.
            advantage: One number, or one a completion token.
        """
        ...


ROLLOUTS: Registry[Callable[..., Rollout]] = Registry(
    "rollout",
    "rstar2_env.trainers.rollouts",
    "rstar2_env.rollouts",
    shape=Shape(
        is_called_with(3, coroutine=True),
        "a class whose objects are awaited with (starts, size, play), or such a function",
    ),
)
