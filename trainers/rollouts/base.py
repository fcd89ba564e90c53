"""``Rollout``: the base class of rollout parts, which play the episodes of each group through ``Play``.

A rollout part decides which episodes are played, which of them branch off others, and in which order. Not covered:
playing an episode (the player), scoring, and selection.
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
from rstar2_env.rewards.component import Component

from ..samplers.base import Start

_T = TypeVar("_T")


class Play(Protocol):
    """The interface through which a rollout part plays episodes, for one call of the part.

    Attributes:
        rng: Random generator for the part; different for every rollout, refill round and process.
        step: Number of rollouts so far.
        judge: The model that ``rollout.judge`` names; ``None`` if it names none.
    """

    rng: np.random.Generator
    step: int
    judge: RewardJudge | None

    def draws(self, group: int, *words: int) -> np.random.Generator:
        """Return the random generator of a group; it is independent of the number of processes and of other groups.

        Args:
            group: Position of the group in the ``starts`` of the part.
            *words: Numbers that identify the generator; the same numbers give the same random draws.
        """
        ...

    async def episode(
        self, start: Start, *, group: int, member: int, shown: str | None = None, manner: Manner = PLAIN
    ) -> Episode:
        """Play one episode to its end. If it fails, it ends as ``unavailable``; no exception is raised.

        Args:
            start: Start of the episode.
            group: Position of the episode's group in the ``starts`` of the part.
            member: Index of the episode in its group; this index and the group seed the policy's draws.
            shown: Text shown to the policy instead of the user's message, or ``None``. Its first ``{question}``
                (``rstar2_env.rollout.request.QUESTION``) is replaced by that message. The episode is trained on with
                the original message as the prompt: ``prompt_ids`` and ``messages`` contain that message, ``shown_ids``
                and ``shown`` the text that was shown. The ``source`` of the episode is ``refined``, unless the text
                equals the message.
            manner: How the episode is played, for example in chunks. After a chunk, the episode is ``OPEN`` until a
                branch at its end continues it.
        """
        ...

    async def reply(self, text: str, *, group: int, member: int, system: str = "") -> Episode:
        """Sample one turn of the policy without an environment; the reward is 0, and the prompt is ``text``.

        Args:
            text: The user's message.
            group: Position of the episode's group in the ``starts`` of the part.
            member: Index of the episode in its group, unique within the group.
            system: The system message; empty for none.

        Raises:
            ConfigurationError: The player does not support replies.
        """
        ...

    async def given(self, start: Start, turns: Sequence[str], *, group: int, member: int) -> Episode:
        """Play an episode with given turns: its ``source`` is ``expert``, and the environment grades it.

        If the turns do not end the episode, it is ``unavailable``.

        Args:
            start: Start of the episode.
            turns: The texts of the turns.
            group: Position of the episode's group in the ``starts`` of the part.
            member: Index of the episode in its group, unique within the group.

        Raises:
            ConfigurationError: The player does not support given turns.
        """
        ...

    def problem(self, problem_id: str) -> Problem | None:
        """Return the problem with an id, with its gold answer and its ``meta``; ``None`` if there is no such problem.

        Do not put its answer or ``meta`` into the prompt of an episode that is trained on.
        """
        ...

    async def branch(self, episode: Episode, token: int, n: int, *, manner: Manner = PLAIN) -> list[Episode]:
        """Play ``n`` episodes that begin with the first tokens of ``episode`` and continue differently.

        The turns before the branching position are replayed in the environment, which must be deterministic for the
        same seed and actions, as its contract requires.

        Args:
            episode: An episode that this object played.
            token: Number of tokens of ``completion_ids`` that the branches share with the episode. The position must be
                within or right before a policy turn, or at the end of an ``OPEN`` episode.
            n: Number of branches.
            manner: How the branches are played after these tokens.

        Raises:
            BranchError: The episode cannot branch there, or the environment's text differs in the replay.
        """
        ...

    async def score(self, prompt_ids: Sequence[int], ids: Sequence[int]) -> list[float]:
        """Return the policy's log-probability of every token of ``ids``, given ``prompt_ids`` and the tokens before it.

        Raises:
            ConfigurationError: The engine cannot score given tokens.
        """
        ...


@dataclass(frozen=True, slots=True)
class OlderWeights:
    """Specification of the older weights that a backend keeps in addition to the newest weights.

    Attributes:
        every: Number of optimizer steps after which the newest weights replace the older weights.
        base_urls: Addresses of the servers that hold the older weights, if the engine uses servers.
    """

    every: int
    base_urls: tuple[str, ...] = ()


class Rollout:
    """Base class of rollout parts. A part implements ``group`` or ``__call__``; everything else has a default.

    A part that adapts from step to step also has ``state_dict`` and ``load_state_dict``; its state is saved in
    checkpoints.

    Attributes:
        columns: Columns of the training rows that the part, not the trainer, computes; for example ``teacher``.
        staged: Reason why later episodes of a group wait for earlier episodes, as a clause for messages; empty if they
            do not wait. The groups of a staged part cannot end early, so a run with ``early_stop`` or a ``tail`` other
            than ``wait`` rejects the part.
    """

    columns: ClassVar[tuple[str, ...]] = ()
    staged: ClassVar[str] = ""

    @property
    def manner(self) -> Manner:
        """How the part's episodes are played; a run starts only if the player supports this ``Manner``."""
        return PLAIN

    @property
    def older_weights(self) -> OlderWeights | None:
        """Older weights from which the part samples some turns; ``None`` if all turns use the newest weights."""
        return None

    async def __call__(self, starts: Sequence[Start], size: int, play: Play) -> list[list[Episode]]:
        """Return the episodes of each group, in the order of ``starts``.

        Args:
            starts: The starts of the groups.
            size: Number of episodes to play for each start.
            play: Plays the episodes.
        """
        return await at_once(self.group(start, number, size, play) for number, start in enumerate(starts))

    async def group(self, start: Start, number: int, size: int, play: Play) -> list[Episode]:
        """Return the episodes of one group; by default, all of them are played from start to end in ``manner``.

        Args:
            start: The start of the group.
            number: Position of the group among the starts.
            size: Number of episodes to play.
            play: Plays the episodes.
        """
        members = range(size)
        return await at_once(play.episode(start, group=number, member=one, manner=self.manner) for one in members)

    def apart(self, group: Sequence[Episode]) -> list[int]:
        """Return the positions of episodes that are trained on with the advantage 0, independently of the selector.

        Args:
            group: The episodes that this rollout returned for one problem and seed.
        """
        return []

    def rows(self, episode: Episode, advantage: float | NDArray[np.float64]) -> list[Row]:
        """Return the training rows of an episode.

        Args:
            episode: A selected episode.
            advantage: One number, or one for each completion token.
        """
        return [Row.of(episode, advantage)]

    def report(self, group: Sequence[Episode]) -> Any:
        """Return data about a scored group, which ``update`` receives in all processes; ``None`` for no data.

        Args:
            group: The episodes that the part returned for one start.
        """
        return None

    def update(self, reports: Sequence[Any]) -> None:
        """Adapt to the reports of all groups of a step; called with the same reports in every process.

        Args:
            reports: The results of ``report`` other than ``None``, in the order of the groups' numbers.
        """


RolloutPart = Rollout | Callable[[Sequence[Start], int, Play], Awaitable[list[list[Episode]]]]
"""A rollout part: an object of ``Rollout``, or a coroutine function or object with the same call signature."""


def as_rollout(part: RolloutPart) -> Rollout:
    """Return a part with all methods of ``Rollout``; methods that it does not define get their defaults.

    Args:
        part: A rollout part that may lack methods of ``Rollout``.
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
        ConfigurationError: The player does not support the part's ``manner``.
    """
    if rollout.manner == PLAIN:
        return
    check = getattr(player, "check_manner", None)
    if check is None:
        raise ConfigurationError(
            f"The rollout part {type(rollout).__name__} plays episodes in chunks, samples from "
            "older weights, or measures the entropy of turns. This requires a player with the method `check_manner`, "
            f"which {type(player).__name__} does not have: use rstar2_env.rollout.Player, for example."
        )
    check(rollout.manner)


def check_waits(rollout: Rollout, rewards: Sequence[Component], *, early_stop: bool, tail: str) -> None:
    """Check that no option ends groups early if some episodes of a group are played only after others.

    Args:
        rollout: The rollout part.
        rewards: The components of the reward.
        early_stop: Whether the rest of a group is cancelled once its selector has enough episodes.
        tail: Treatment of the groups that end last; see ``StepOptions``.

    Raises:
        ConfigurationError: An option ends groups early, and the rollout part is staged or a component plays episodes.
    """
    option = "early_stop" if early_stop else "tail" if tail != "wait" else ""
    if not option:
        return
    instead = f"rollout.{option} to {'false' if early_stop else 'wait'}."
    if rollout.staged:
        raise ConfigurationError(
            f"With rollout.{option}, groups can end before all of their episodes are played, but the "
            f"rollout part {type(rollout).__name__} does not allow this, since {rollout.staged}. Set "
            f"{instead}",
            option=f"rollout.{option}",
        )
    if plays := [component.name for component in rewards if "play" in component.needs]:
        raise ConfigurationError(
            f"The reward {', '.join(plays)} plays further episodes of a group after the others have "
            f"ended, but rollout.{option} can end the group before these are played. Set {instead}",
            option=f"rollout.{option}",
        )


ROLLOUTS: Registry[Callable[..., RolloutPart]] = Registry(
    "rollout",
    "rstar2_env.trainers.rollouts",
    "rstar2_env.rollouts",
    shape=Shape(
        is_called_with(3, coroutine=True),
        "a class whose objects are async callables of (starts, size, play), or an async function of them",
    ),
)


async def at_once(awaitables: Iterable[Awaitable[_T]]) -> list[_T]:
    """Await all awaitables concurrently; return their results in order."""
    import asyncio  # here, so that listing parts does not import it

    return list(await asyncio.gather(*awaitables))
