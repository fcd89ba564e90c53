"""Scores the episodes of a group: the components of the reward, their sum, and what they need beside the episode."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError, ServiceError
from rstar2_env.problems import Problem
from rstar2_env.rewards.base import Judge, LanguageModel, Learns, OnTurns, Plays, RewardContext, Score
from rstar2_env.rewards.component import Component

from .advantages.base import Advantages
from .advantages.tokens import on_tokens, on_turns

_LOG = logging.getLogger(__name__)
_MEASURED = "turn_scores"
"""Where an episode keeps what its turns earn by themselves, as ``Episode.measured`` names it."""


class Policy(LanguageModel, Plays, Protocol):
    """The policy, as a collector offers it: its log-probabilities, and further episodes of it."""


class Scorer:
    """Scores groups with the components of a trainer's reward.

    Args:
        components: The components.
        judge: For components that need one.
        problem: The problem of an id, for components that need it.

    Raises:
        ConfigurationError: There is no component, two have the same name, one needs what is not there, or one is paid
            by the step.
    """

    def __init__(
        self, components: Sequence[Component], judge: Judge | None, problem: Callable[[str], Problem] | None
    ) -> None:
        self._components, self._judge, self._problem = components, judge, problem
        names = [component.name for component in components]
        if not names or len(set(names)) < len(names):
            raise ConfigurationError(
                f"A trainer needs reward components with distinct names, at least one, not {names}; name a second of "
                "the same kind with its option label."
            )
        for component in components:
            component.check()
            if component.when == "step":
                raise ConfigurationError(
                    f"A trainer pays the reward component {component.name!r} at the end of an episode: leave out "
                    "when=step, or put it into the wrapper reward_shaping."
                )
            if "judge" in component.needs and judge is None:
                raise ConfigurationError(
                    f"The reward component {component.name!r} needs a judge, and this trainer has none: give the run "
                    "one (rollout.judge), or leave the component out."
                )
            if "problem" in component.needs and problem is None:
                raise ConfigurationError(
                    f"The reward component {component.name!r} needs the problem of each episode, and this environment "
                    "has no source of problems: choose one that has, such as rstar2/MathTool-v0."
                )

    @property
    def learning(self) -> list[Learns]:
        """The scores that learn from step to step."""
        scores: list[object] = [component.score for component in self._components]
        return [score for score in scores if isinstance(score, Learns)]

    async def score(self, group: Sequence[Episode], policy: Policy) -> None:
        """Set ``rewards`` and ``reward`` of every episode of a group that counts.

        ``reward`` becomes the sum of the components; one that has nothing to score is not among ``rewards``. What the
        environment told apart of its own return stays there as ``return/<name>``, and the mean of what a component
        gives to the turns themselves as ``turns/<name>``. An episode whose judge does not answer is ``unavailable``.

        Args:
            group: All episodes of the group.
            policy: The policy.
        """
        counted = [episode for episode in group if episode.available]

        async def values_of(episode: Episode) -> list[Score] | ServiceError:
            try:
                return [
                    await component.avalue(episode, self._context(component, episode, counted, policy))
                    for component in self._components
                ]
            except ServiceError as error:
                return error

        # All of them before any reward changes: a component may compare the returns of the group.
        for episode, values in zip(counted, await asyncio.gather(*map(values_of, counted)), strict=True):
            if isinstance(values, ServiceError):
                _LOG.warning("An episode has no reward, and counts for nothing: %s", values)
                episode.void("unavailable", str(values))
                continue
            scored = {component.name: value for component, value in zip(self._components, values, strict=True)}
            found = {
                name: value for name, value in scored.items() if value is not None and not isinstance(value, OnTurns)
            }
            of_turns = {name: value for name, value in scored.items() if isinstance(value, OnTurns)}
            own = {f"return/{name}": value for name, value in episode.rewards.items()}
            means = {f"turns/{name}": sum(value) / max(len(value), 1) for name, value in of_turns.items()}
            episode.rewards = {**own, **means, **found}
            episode.reward = float(sum(found.values()))
            if of_turns:
                episode.measured[_MEASURED] = np.sum(list(of_turns.values()), axis=0).tolist()

    def _context(
        self, component: Component, episode: Episode, counted: Sequence[Episode], policy: Policy
    ) -> RewardContext:
        needs, find = component.needs, self._problem
        return RewardContext(
            episode.steps[-1].info if episode.steps else {},
            group=counted if "group" in needs else (),
            lm=policy if "lm" in needs else None,
            judge=self._judge if "judge" in needs else None,
            problem=find(episode.problem_id) if find is not None and "problem" in needs else None,
            play=policy if "play" in needs else None,
        )


def paid_by_turn(groups: Sequence[Sequence[Episode]], values: Advantages) -> Advantages:
    """Add what turns earned by themselves to the advantages of their tokens.

    Args:
        groups: The episodes.
        values: Their advantages; where no component scores turns, they are returned as they are.
    """
    return [
        [
            on_tokens(value, episode) + on_turns(episode.measured[_MEASURED], episode)
            if _MEASURED in episode.measured
            else value
            for episode, value in zip(group, own, strict=True)
        ]
        for group, own in zip(groups, values, strict=True)
    ]
