"""Scores of an evaluation: reward components that measure each episode in addition to the environment's reward.

The components are those of training (``rstar2_env.rewards``), and the ``rewards`` of an episode have the same names as
in training. ``reward`` and ``correct`` of the episode remain the environment's. Not covered: figures of the scores
(``rstar2_env.evaluation.figures.summary``).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rstar2_env.core.blocking import all_ended
from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.parts import PartSpec, read_part
from rstar2_env.core.options.text import split_parts
from rstar2_env.evaluation.play.plan import Task
from rstar2_env.evaluation.play.played import PlayedEpisode
from rstar2_env.problems import ProblemSource
from rstar2_env.rewards.base import Need
from rstar2_env.rewards.component import Component, make_component
from rstar2_env.rewards.needs import ALL, OWN_JUDGE, PLACES, check_needs
from rstar2_env.rewards.scoring import ComponentPolicy, RewardScorer

if TYPE_CHECKING:
    from rstar2_env.rollout import Player

ScoreSpec: TypeAlias = Component | PartSpec
"""Specification of a score; see ``make_component``."""

NOT_OF_AGENTS: Mapping[Need, str] = dict.fromkeys(
    ALL - PLACES["agents"],
    "which an agent does not have: evaluate a model, whose engine provides them, or omit the score.",
)
"""Inputs that reward components can need but an evaluation of an agent cannot provide, mapped to the reasons."""


def read_scores(written: str | Sequence[ScoreSpec], limit: int | None = None) -> list[Component]:
    """Make the reward components that score episodes.

    Args:
        written: List of components, each as ``make_component`` takes it; or one text in which ``+`` joins them.
        limit: Token budget of a model's episode, passed to components that take a limit; ``None`` if an agent plays.

    Raises:
        ConfigurationError: ``written`` is neither a list nor a text, an option is invalid, or the player cannot provide
            an input that a component needs.
        UnknownNameError: A name is not the name of a component.
    """
    listed = split_parts(written) if isinstance(written, str) else written
    if not isinstance(listed, Sequence):
        raise ConfigurationError(
            f"`scores` must be a list of reward components, not {written!r}: put it into a list.", option="scores"
        )
    given = {} if limit is None else {"limit": limit}
    made = [make_component(one, **given) for one in listed]
    without: dict[Need, str] = {"judge": f"and an evaluation does not provide one: {OWN_JUDGE}"}
    for component in made:
        component.check()
        check_needs(component, {**without, **(NOT_OF_AGENTS if limit is None else {})})
    return made


def recorded(written: str | Sequence[ScoreSpec]) -> list[str]:
    """Return the specifications of scores as JSON values; component objects are replaced with their names."""
    listed = split_parts(written) if isinstance(written, str) else written
    return [one.name if isinstance(one, Component) else str(read_part(one)) for one in listed]


class EpisodeScores:
    """Scores episodes as they end: each by itself, or all samples of a start together if a component compares them.

    Threads and coroutines may share this object.

    Args:
        components: The reward components that score the episodes.
        samples: Number of episodes of each start (a problem and a seed).
        source: Source of the problems; ``None`` if the environment chooses them.
        lacking: Inputs that components can need but the player cannot provide, mapped to the reasons; see
            ``check_needs``.

    Attributes:
        together: Number of samples of a start that are scored together, and that a resumed evaluation keeps together; 1
            if each episode is scored alone.

    Raises:
        ConfigurationError: This evaluation cannot provide an input that a component needs; see ``RewardScorer``.
    """

    def __init__(
        self,
        components: Sequence[Component],
        *,
        samples: int,
        source: ProblemSource | None,
        lacking: Mapping[Need, str],
    ) -> None:
        lacking = dict(lacking)
        if source is None:
            lacking["problem"] = (
                "and this environment has no source of problems: choose an environment with a source, such as "
                "rstar2/MathTool-v0."
            )
        if samples == 1:
            lacking["group"] = "and each problem or seed is played only once: ask for 2 or more samples of each."
        self._scorer = RewardScorer(components, lacking=lacking, problem=None if source is None else source.get)
        self.together = samples if any("group" in component.needs for component in components) else 1
        self._waiting: dict[int, list[PlayedEpisode]] = {}
        self._lock = threading.Lock()

    async def score(
        self, played: PlayedEpisode, policy: Callable[[Sequence[PlayedEpisode]], ComponentPolicy] | None = None
    ) -> Sequence[PlayedEpisode]:
        """Take an episode that has ended, and score all episodes that can be scored now.

        Args:
            played: The episode that has ended.
            policy: Takes the episodes to score and returns the policy that the components may use; ``None`` without a
                policy.

        Returns:
            The episodes that were scored; empty while other samples of the same problem and seed are being played.
        """
        group = self._complete(played)
        if group:
            offered = None if policy is None else policy(group)
            await self._scorer.score([one.episode for one in group], offered, pays=False)
        return group

    def _complete(self, played: PlayedEpisode) -> list[PlayedEpisode]:
        if self.together == 1:
            return [played]
        with self._lock:
            group = self._waiting.setdefault(played.task.start, [])
            group.append(played)
            if len(group) < self.together:
                return []
            return sorted(self._waiting.pop(played.task.start), key=lambda one: one.task.index)


class OfferedPolicy:
    """The player's policy as a ``ComponentPolicy``, for the components that score one group.

    Args:
        player: Plays further episodes.
        room: Limits the number of episodes that play at the same time.
        group: The episodes that are scored.
    """

    def __init__(self, player: Player, room: asyncio.Semaphore, group: Sequence[PlayedEpisode]) -> None:
        self.score, self.encode, self.decode = player.score, player.encode, player.decode
        self._player, self._room = player, room
        self._tasks = {id(one.episode): one.task for one in group}

    async def branch(self, episode: Episode, token: int, n: int) -> list[Episode]:
        """Play ``n`` episodes that share the first ``token`` completion tokens of ``episode``, then differ.

        Raises:
            ConfigurationError: ``episode`` is not one of the episodes in ``group``, which are being scored.
        """
        task = self._tasks.get(id(episode))
        if task is None:
            raise ConfigurationError(
                "A reward component can only branch episodes of the group that it scores (the episodes of one problem)."
            )

        async def one(index: int) -> Episode:
            draws = np.random.SeedSequence([task.draws, token, index])
            async with self._room:
                return await self._player.branch(
                    episode, token, options=options_of(task), sampling_seed=int(draws.generate_state(1, np.uint64)[0])
                )

        return await all_ended(map(one, range(n)))


def options_of(task: Task) -> dict[str, Any]:
    """Return the options of ``reset`` for a task."""
    return {} if task.problem is None else {"problem": task.problem}
