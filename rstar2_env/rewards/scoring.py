"""Scores the episodes of a group with components, for the reward of a trainer and the scores of an evaluation."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError, ServiceError
from rstar2_env.problems.problem import Problem
from rstar2_env.rewards.base import LanguageModel, Learns, Need, OnTurns, Plays, RewardContext, RewardJudge, Score
from rstar2_env.rewards.component import Component
from rstar2_env.rewards.environment_return import EnvironmentReturn
from rstar2_env.rewards.needs import check_needs

_LOG = logging.getLogger(__name__)

_OWN = "return/"
"""Prefix in ``Episode.rewards`` for the names of the reward components that the environment itself reported."""
TURN_SCORES = "turn_scores"
"""Key in ``Episode.measured`` for a list with one number per turn: the sum of the turn's scores over the components
that score each turn (``OnTurns``)."""
TURN_RETURNS = "turn_returns"
"""Key in ``Episode.measured`` for a list with the environment's reward of each turn, multiplied by the factor that the
component ``return`` applies."""


class ComponentPolicy(LanguageModel, Plays, Protocol):
    """Interface through which a reward component uses the policy: log-probabilities, tokens, further episodes."""


class RewardScorer:
    """Scores groups of episodes.

    Args:
        components: The components.
        lacking: Needs that are not met, in the format of ``check_needs``.
        judge: Judge for components that need one and do not have their own; ``None`` if there is none.
        problem: Function that returns the problem with a given id, for components that need the problem.

    Raises:
        ConfigurationError: There is no component, two components have the same name, a need is not met, or a component
            has ``when="step"``.
    """

    def __init__(
        self,
        components: Sequence[Component],
        *,
        lacking: Mapping[Need, str],
        judge: RewardJudge | None = None,
        problem: Callable[[str], Problem] | None = None,
    ) -> None:
        self._components, self._judge, self._problem = components, judge, problem
        names = [component.name for component in components]
        if not names or len(set(names)) < len(names):
            raise ConfigurationError(
                f"Expected at least one reward component, with distinct names; got {names}. If two components have "
                "the same name, rename one of the two with the option `label`."
            )
        for component in components:
            component.check()
            if component.when == "step":
                raise ConfigurationError(
                    "Only the wrapper 'reward_shaping' supports when=step: remove when=step from the reward "
                    f"component {component.name!r}, or move the component into that wrapper."
                )
            check_needs(component, lacking)

    @property
    def learning(self) -> list[Learns]:
        """The ``score`` objects of the components that adapt from step to step; checkpoints contain their states."""
        scores: list[object] = [component.score for component in self._components]
        return [score for score in scores if isinstance(score, Learns)]

    async def score(self, group: Sequence[Episode], policy: ComponentPolicy | None, *, pays: bool = True) -> None:
        """Set ``rewards`` of every available episode of a group, and ``reward`` to the sum of its components.

        A component with nothing to score is omitted from ``rewards``. The environment's own reward components become
        ``return/<name>``. A component with one score per turn is recorded as ``turns/<name>``, the mean of its scores,
        which is not part of the sum. If a judge does not answer, the episode becomes ``unavailable``.

        Args:
            group: All episodes of the group.
            policy: The policy; ``None`` if no component needs it.
            pays: Whether to set ``reward``; otherwise ``reward`` stays the environment's return.
        """
        import asyncio  # imported here: listing components does not need it

        counted = [episode for episode in group if episode.available]

        async def values_of(episode: Episode) -> list[Score] | ServiceError:
            try:
                return [
                    await component.avalue(episode, self._context(component, episode, counted, policy))
                    for component in self._components
                ]
            except ServiceError as error:
                return error

        # Compute all scores before any reward changes, because a component may compare the group's returns.
        for episode, values in zip(counted, await asyncio.gather(*map(values_of, counted)), strict=True):
            if isinstance(values, ServiceError):
                _LOG.warning(
                    "An episode could not be scored, so it is left out of training and of the metrics: %s", values
                )
                episode.void("unavailable", str(values))
                continue
            scored = {component.name: value for component, value in zip(self._components, values, strict=True)}
            found = {
                name: value for name, value in scored.items() if value is not None and not isinstance(value, OnTurns)
            }
            of_turns = {name: value for name, value in scored.items() if isinstance(value, OnTurns)}
            own = {_OWN + name: value for name, value in episode.rewards.items()}
            means = {f"turns/{name}": sum(value) / max(len(value), 1) for name, value in of_turns.items()}
            episode.rewards = {**own, **means, **found}
            if pays:
                episode.reward = float(sum(found.values()))
                share = self._share_of_return(episode, found)
                episode.measured[TURN_RETURNS] = [share * turn.reward for turn in episode.steps]
            if of_turns:
                episode.measured[TURN_SCORES] = [sum(each) for each in zip(*of_turns.values(), strict=True)]

    def _share_of_return(self, episode: Episode, paid: Mapping[str, float]) -> float:
        """Return the sum of the components ``return``, divided by the environment's return.

        If the environment's return is 0, return the sum of the components' weights instead.
        """
        whole = sum(turn.reward for turn in episode.steps)
        shares = (
            paid[component.name] / whole if whole else component.weight
            for component in self._components
            if isinstance(component.score, EnvironmentReturn) and component.name in paid
        )
        return sum(shares)

    def _context(
        self, component: Component, episode: Episode, counted: Sequence[Episode], policy: ComponentPolicy | None
    ) -> RewardContext:
        needs, find = component.needs, self._problem
        return RewardContext(
            episode.steps[-1].info if episode.steps else {},
            group=counted if "group" in needs else (),
            lm=policy if "lm" in needs else None,
            judge=self._judge if "judge" in needs else None,
            problem=find(episode.problem_id) if find is not None and component.takes_problem else None,
            play=policy if "play" in needs else None,
        )


def unscore(episode: Episode) -> None:
    """Restore a scored episode's reward and reward components from the environment, so that it can be scored again."""
    episode.reward = sum(turn.reward for turn in episode.steps)
    own = {name: value for name, value in episode.rewards.items() if name.startswith(_OWN)}
    episode.rewards = {name.removeprefix(_OWN): value for name, value in own.items()}
