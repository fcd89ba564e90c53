"""``Rollout``: the base class of rollout parts, which play the episodes of each group through ``Play``.

A part decides which episodes are played, which of them branch off others, and in which order; it neither scores nor
selects. Not covered: how an episode is played, which is the player's task.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.manner import PLAIN, Manner
from rstar2_env.core.options.registry import Registry
from rstar2_env.core.options.user_code import Shape, is_called_with
from rstar2_env.core.row import Row
from rstar2_env.problems import Problem
from rstar2_env.rewards.base import RewardJudge

from ..samplers.base import Start

_T = TypeVar("_T")


class Play(Protocol):
    """Plays episodes for a rollout part; every call of the part gets a new one.

    Attributes:
        rng: Source of the part's random draws; different for every step, round of refill and process.
        step: Number of optimizer steps so far.
        judge: The model that ``rollout.judge`` names; ``None`` if it names none.
    """

    rng: np.random.Generator
    step: int
    judge: RewardJudge | None

    def draws(self, group: int, *words: int) -> np.random.Generator:
        """Return a random generator for a group, the same on any number of processes and in whatever step it ends.

        Args:
            group: Position of the group among the starts of this call.
            *words: Key of the draws; the same words give the same draws.
        """
        ...

    async def episode(
        self, start: Start, *, group: int, member: int, shown: str | None = None, manner: Manner = PLAIN
    ) -> Episode:
        """Play one episode to its end. A failure ends it as ``unavailable`` and raises nothing.

        Args:
            start: Start of the episode.
            group: Position of its group among the starts of this call.
            member: Number of the episode in its group; with the group, it seeds the policy's draws.
            shown: Text shown to the policy in place of the user's message; its first ``{question}``
                (``rstar2_env.rollout.request.QUESTION``) is replaced by that message. The episode trains under the
                message itself: ``prompt_ids`` and ``messages`` are those without help, ``shown_ids`` and ``shown``
                those with help, and its ``source`` is ``refined``. A text equal to the message is not help.
            manner: How the episode is played; in chunks, for example, after which it is ``OPEN`` until it is branched
                off.
        """
        ...

    async def reply(self, text: str, *, group: int, member: int, system: str = "") -> Episode:
        """Ask the policy for one turn, without an environment. The episode earns nothing, and trains under ``text``.

        Args:
            text: The user's message.
            group: Position of its group among the starts of this call.
            member: Its number in the group; ``episode``, ``reply`` and ``given`` share one series.
            system: The system message; empty for none.

        Raises:
            ConfigurationError: The player does not support it.
        """
        ...

    async def given(self, start: Start, turns: Sequence[str], *, group: int, member: int) -> Episode:
        """Play an episode with given turns: its ``source`` is ``expert``, and the environment grades it.

        If the turns do not end the episode, it is ``unavailable``.

        Args:
            start: Where it starts.
            turns: The turns as text.
            group: Position of its group among the starts of this call.
            member: Its number in the group; ``episode``, ``reply`` and ``given`` share one series.

        Raises:
            ConfigurationError: The player does not support it.
        """
        ...

    def problem(self, problem_id: str) -> Problem | None:
        """Return the problem of an id, with its gold answer and its ``meta``; ``None`` if the environment has none.

        Its answer and ``meta`` must not reach the prompt that an episode trains under.
        """
        ...

    async def branch(self, episode: Episode, token: int, n: int, *, manner: Manner = PLAIN) -> list[Episode]:
        """Play ``n`` episodes that start with tokens of ``episode`` and continue differently.

        The turns before that token are replayed, so that the environment reaches the same state. This requires that it
        is deterministic for its seed and actions, as its contract says.

        Args:
            episode: An episode of this call.
            token: Number of tokens of ``completion_ids`` that the branches share with it; within or right before a
                policy turn, or the end of an ``OPEN`` episode.
            n: Number of branches.
            manner: How the branches are played after these tokens.

        Raises:
            BranchError: There is no policy turn at that token, or the replay shows other text than the episode did.
        """
        ...

    async def score(self, prompt_ids: Sequence[int], ids: Sequence[int]) -> list[float]:
        """Return the policy's log-probability of each of ``ids`` after ``prompt_ids`` and those before it.

        Raises:
            ConfigurationError: The engine cannot score given tokens.
        """
        ...


@dataclass(frozen=True, slots=True)
class OlderWeights:
    """Weights of the policy from before the last steps, which a backend keeps in addition to the newest.

    Attributes:
        every: Number of steps after which they are replaced by the newest weights.
        base_urls: Addresses of the servers that hold them, if the engine is served.
    """

    every: int
    base_urls: tuple[str, ...] = ()


class Rollout:
    """Base class of rollout parts. A part implements ``group`` or ``__call__``; everything else has a default.

    A part that learns from step to step also has ``state_dict`` and ``load_state_dict``, and its state goes into
    checkpoints.

    Attributes:
        columns: Columns of the rows that the part sets itself, so that the trainer need not compute them (``teacher``).
        staged: Why later episodes of a group have to wait for earlier ones, as the end of a sentence; empty if they do
            not. The groups of a staged part cannot end early, so it is refused with early stop, and with a tail that
            does not wait.
    """

    columns: ClassVar[tuple[str, ...]] = ()
    staged: ClassVar[str] = ""

    @property
    def manner(self) -> Manner:
        """All abilities that any of its episodes needs, so that a run can check the player first."""
        return PLAIN

    @property
    def older_weights(self) -> OlderWeights | None:
        """The older weights from which the part draws turns; ``None`` if it uses only the newest."""
        return None

    async def __call__(self, starts: Sequence[Start], size: int, play: Play) -> list[list[Episode]]:
        """Return the episodes of each group, in the order of ``starts``.

        Args:
            starts: The starts of the groups.
            size: Number of episodes to play for each start.
            play: Plays them.
        """
        return await at_once(self.group(start, number, size, play) for number, start in enumerate(starts))

    async def group(self, start: Start, number: int, size: int, play: Play) -> list[Episode]:
        """Return the episodes of one group; by default, all of them are played from start to end in ``manner``.

        Args:
            start: The start of the group.
            number: Position of the group among the starts.
            size: Number of episodes to play.
            play: Plays them.
        """
        members = range(size)
        return await at_once(play.episode(start, group=number, member=one, manner=self.manner) for one in members)

    def apart(self, group: Sequence[Episode]) -> list[int]:
        """Return the positions of episodes that train with the advantage 0 and are not shown to the selector.

        Args:
            group: The episodes that the part returned for one start.
        """
        return []

    def rows(self, episode: Episode, advantage: float | NDArray[np.float64]) -> list[Row]:
        """Return the rows in which an episode trains.

        Args:
            episode: A selected episode.
            advantage: One number, or one for each completion token.
        """
        return [Row.of(episode, advantage)]

    def report(self, group: Sequence[Episode]) -> Any:
        """Return data about a scored group for ``update`` in all processes; ``None`` for nothing.

        Args:
            group: The episodes that the part returned for one start.
        """
        return None

    def update(self, reports: Sequence[Any]) -> None:
        """Learn from the reports of all groups of a step; called with the same reports in every process.

        Args:
            reports: The results of ``report`` other than ``None``, in the order of the groups' numbers.
        """


RolloutPart = Rollout | Callable[[Sequence[Start], int, Play], Awaitable[list[list[Episode]]]]
"""A rollout part: an object of ``Rollout``, or a coroutine function or object that is called like one."""


def as_rollout(part: RolloutPart) -> Rollout:
    """Return a part with all methods of ``Rollout``; those that the part does not have get the defaults.

    Args:
        part: The part.
    """
    if isinstance(part, Rollout):
        return part
    names = ("columns", "staged", "manner", "older_weights", "apart", "rows", "report", "update")
    own = {name: getattr(part, name) for name in names if hasattr(part, name)}
    adapted: Rollout = type(type(part).__name__, (Rollout,), {**own, "__call__": staticmethod(part)})()
    return adapted


def check_manner(rollout: Rollout, player: object) -> None:
    """Check that a player can play the episodes of a part.

    Raises:
        ConfigurationError: It cannot.
    """
    if rollout.manner == PLAIN:
        return
    check = getattr(player, "check_manner", None)
    if check is None:
        raise ConfigurationError(
            f"The rollout part {type(rollout).__name__} plays in chunks, measures candidates or draws from older "
            f"weights, and the player {type(player).__name__} has no `check_manner`: use one that has it, such as "
            "rstar2_env.rollout.Player."
        )
    check(rollout.manner)


def check_waits(rollout: Rollout, *, early_stop: bool, tail: str) -> None:
    """Check that the groups of a part may end as early as the options of a run allow.

    Args:
        rollout: The part.
        early_stop: Whether the rest of a group is cancelled once its selector has enough episodes.
        tail: Treatment of the groups that end last; see ``StepOptions``.

    Raises:
        ConfigurationError: They may not.
    """
    option = "early_stop" if early_stop else "tail" if tail != "wait" else ""
    if option and rollout.staged:
        raise ConfigurationError(
            f"The rollout part {type(rollout).__name__} cannot let a group end early, since {rollout.staged}: set it "
            f"to {'false' if early_stop else 'wait'}",
            option=f"rollout.{option}",
        )


ROLLOUTS: Registry[Callable[..., RolloutPart]] = Registry(
    "rollout",
    "rstar2_env.trainers.rollouts",
    "rstar2_env.rollouts",
    shape=Shape(
        is_called_with(3, coroutine=True),
        "a class whose objects are awaited with (starts, size, play), or such a function",
    ),
)


async def at_once(awaitables: Iterable[Awaitable[_T]]) -> list[_T]:
    """Await all at the same time; return their results in order."""
    import asyncio  # here, so that listing parts does not import it

    return list(await asyncio.gather(*awaitables))
