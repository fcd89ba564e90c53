"""What a rollout part is: it plays the episodes of each group, through what ``Play`` offers.

A part decides which episodes are played, which are branched off others, and in which order; it neither scores nor
selects. Not covered: how an episode is played, which is the player's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.manner import PLAIN, Manner
from rstar2_env.core.options.own_code import Shape, is_called_with
from rstar2_env.core.options.registry import Registry
from rstar2_env.core.row import Row
from rstar2_env.problems import Problem
from rstar2_env.rewards.base import RewardJudge

from ..samplers.base import Start

_T = TypeVar("_T")


class Play(Protocol):
    """What a rollout part plays with; made anew for every call of the part.

    Attributes:
        rng: Source of the part's random draws; different for every step, round of refill and process.
        step: Number of optimizer steps so far.
        judge: The model that ``rollout.judge`` names; ``None`` where none is named.
    """

    rng: np.random.Generator
    step: int
    judge: RewardJudge | None

    def draws(self, group: int, *words: int) -> np.random.Generator:
        """A source of draws about one group, the same on any number of processes and in whatever step it ends.

        Args:
            group: Position of the group among the starts of this call.
            *words: Tell apart what is drawn; the same words give the same draws.
        """
        ...

    async def episode(
        self, start: Start, *, group: int, member: int, shown: str | None = None, manner: Manner = PLAIN
    ) -> Episode:
        """Play one episode to its end. A failure ends it as ``unavailable`` and raises nothing.

        Args:
            start: Where it starts.
            group: Position of its group among the starts of this call.
            member: Number of the episode in its group; with the group, it seeds the policy's draws.
            shown: Text that the policy is shown in place of the user's message, in which the first ``{question}``
                (``rstar2_env.rollout.request.QUESTION``) stands for that message. The episode trains under the message
                itself: ``prompt_ids`` and ``messages`` are those without help, ``shown_ids`` and ``shown`` those that
                it was played under, and its ``source`` is ``refined``. A text that changes nothing is no help.
            manner: How it is played; in chunks, for example, after which it is left ``OPEN`` until it is branched off.
        """
        ...

    async def reply(self, text: str, *, group: int, member: int, system: str = "") -> Episode:
        """Ask the policy for one turn, without an environment. The episode earns nothing, and trains under ``text``.

        Args:
            text: The user's message.
            group: Position of its group among the starts of this call.
            member: Its number in the group, in one series with those of ``episode``.
            system: The system message; empty for none.

        Raises:
            ConfigurationError: The player cannot do that.
        """
        ...

    async def given(self, start: Start, turns: Sequence[str], *, group: int, member: int) -> Episode:
        """Play an episode whose turns somebody else wrote: its ``source`` is ``expert``, and the environment grades it.

        Turns that do not bring the episode to its end make it ``unavailable``.

        Args:
            start: Where it starts.
            turns: The turns as text.
            group: Position of its group among the starts of this call.
            member: Its number in the group, in one series with those of ``episode``.

        Raises:
            ConfigurationError: The player cannot do that.
        """
        ...

    def problem(self, problem_id: str) -> Problem | None:
        """The problem of that id, with its gold answer and its ``meta``; ``None`` where the environment has none.

        What a part takes from it must not reach the prompt that an episode trains under.
        """
        ...

    async def branch(self, episode: Episode, token: int, n: int, *, manner: Manner = PLAIN) -> list[Episode]:
        """Play ``n`` episodes that begin as ``episode`` did and go on differently.

        The environment is brought to the same place by replaying the turns before that token, which demands that it is
        deterministic for its seed and actions, as its contract says.

        Args:
            episode: An episode of this call.
            token: Number of tokens of ``completion_ids`` that the branches share with it. It must lie in or right
                before a turn of the policy, or be the end of an episode that is ``OPEN``.
            n: Number of branches.
            manner: How they are played from there on.

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
class PlaysIn(Protocol):
    """Optional attribute of a rollout part that plays in a manner of its own, so that a run can check it first."""

    @property
    def manner(self) -> Manner:
        """All that it asks for in any episode."""
        ...


@dataclass(frozen=True, slots=True)
class OlderWeights:
    """Weights of the policy from before the last steps, which a backend holds beside the newest.

    Attributes:
        every: Steps after which they become the newest.
        base_urls: Addresses of the servers that hold them, where the engine is served.
    """

    every: int
    base_urls: tuple[str, ...] = ()


@runtime_checkable
class HoldsOlder(Protocol):
    """Optional attribute of a rollout part that draws turns from older weights."""

    @property
    def older_weights(self) -> OlderWeights:
        """How old they may be, and where they are."""
        ...


@runtime_checkable
class Staged(Protocol):
    """Optional attribute of a rollout part that plays later episodes of a group in answer to its first ones.

    Such a group has not ended when as many of its episodes have as were asked for, which early stop and a tail that
    does not wait take for granted: with them the part is refused.

    Attributes:
        staged: Why the later episodes have to wait for the first ones, as the end of a sentence.
    """

    @property
    def staged(self) -> str:
        """See ``Staged``."""
        ...


@runtime_checkable
class Apart(Protocol):
    """Optional method of a rollout part of whose episodes some train without an advantage, whatever is selected."""

    def apart(self, group: Sequence[Episode]) -> list[int]:
        """Return the positions of those; a selector is not shown them. Their rows have the advantage 0.

        Args:
            group: What the part returned for one start.
        """
        ...


@runtime_checkable
class Learns(Protocol):
    """Optional methods of a rollout part that learns from the episodes of a step, those of all processes alike.

    What it knows goes into checkpoints through ``state_dict`` and ``load_state_dict``.
    """

    def tell(self, group: Sequence[Episode]) -> Any:
        """Return what every process has to know of a group, scored; ``None`` for nothing.

        Args:
            group: What the part returned for one start.
        """
        ...

    def learn(self, told: Sequence[Any]) -> None:
        """Learn what was told of all groups of a step, in the order of their numbers; on every process the same.

        Args:
            told: What ``tell`` returned, where it returned something.
        """
        ...


@runtime_checkable
class PlaysManners(Protocol):
    """A player that knows more than how to play from the start to the end."""

    def check_manner(self, manner: Manner) -> None:
        """Check that episodes can be played so.

        Raises:
            ConfigurationError: They cannot.
        """
        ...


def check_manner(rollout: object, player: object) -> None:
    """Check that a player can play as a part asks for.

    Raises:
        ConfigurationError: It cannot.
    """
    if not isinstance(rollout, PlaysIn):
        return
    if not isinstance(player, PlaysManners):
        raise ConfigurationError(
            f"The rollout part {type(rollout).__name__} plays in chunks, measures candidates or draws from older "
            f"weights, and the player {type(player).__name__} has no `check_manner`: use one that can, such as "
            "rstar2_env.rollout.Player."
        )
    player.check_manner(rollout.manner)


def check_waits(rollout: object, *, early_stop: bool, tail: str) -> None:
    """Check that the groups of a part may end as early as the options of a run let them.

    Args:
        rollout: The part.
        early_stop: Whether the rest of a group is cancelled once its selector has enough.
        tail: What becomes of the groups that end last.

    Raises:
        ConfigurationError: They may not.
    """
    option = "early_stop" if early_stop else "tail" if tail != "wait" else ""
    if option and isinstance(rollout, Staged):
        raise ConfigurationError(
            f"The rollout part {type(rollout).__name__} cannot let a group end early, since {rollout.staged}: set it "
            f"to {'false' if early_stop else 'wait'}",
            option=f"rollout.{option}",
        )


@runtime_checkable
class MakesRows(Protocol):
    """Optional method of a rollout part whose episodes do not train as one row each.

    A part whose rows bring a column that the trainer would compute (``teacher``) names it in an attribute ``columns``.
    """

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


async def at_once(awaitables: Iterable[Awaitable[_T]]) -> list[_T]:
    """Await all at the same time; returns what came of them, in their order."""
    import asyncio  # here, since listing parts plays nothing

    return list(await asyncio.gather(*awaitables))
