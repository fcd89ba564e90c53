"""``RewardShaping``: a reward built from named components, each logged separately.

Covered: weight, gate and clip of each component; the clip of the sum; components scored at the end or at every turn;
components that need the problem, if the environment has a source of problems; components with a judge (the step waits
for its reply). Not covered: components that need more (the group, the policy, its tokens); use these in a trainer's
reward or in the scores of an evaluation.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import gymnasium as gym

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError, EpisodeOverError, ServiceError
from rstar2_env.core.options.parts import PartSpec
from rstar2_env.core.options.text import split_parts
from rstar2_env.problems.source import ProblemSource
from rstar2_env.rewards.base import Need, RewardContext
from rstar2_env.rewards.component import Component, check_bounds, clipped, make_component
from rstar2_env.rewards.needs import ALL, OWN_JUDGE, PLACES, check_needs
from rstar2_env.wrappers.base import StepReturn, TextEnv, TextWrapper, log_parts
from rstar2_env.wrappers.registry import WRAPPERS

_LOG = logging.getLogger(__name__)


class RewardShaping(TextWrapper, gym.utils.RecordConstructorArgs):
    """Replaces the reward with the weighted sum of the environment's own reward and other components.

    At every step with a reward, and at the end, ``info["reward_components"]`` has each component's weighted value; the
    reward is their sum, clipped. The environment's own reward is the component ``task``. Components that the
    environment itself logged appear as ``task/<name>``; they are already part of ``task``. An ``unavailable`` episode
    ends with reward 0 regardless of the components. If a judge does not answer, the episode ends as ``unavailable``
    too, with the reason in ``info["error"]``.

    Args:
        env: A text environment.
        components: The other components, with distinct names: a list of values that ``make_component`` accepts, or one
            string for all of them ("(tool_use:each=0.05,gate=correct)+answer_format").
        task_weight: Factor on the environment's own reward.
        clip: Minimum and maximum reward of one step; ``None`` does not clip.

    Raises:
        ConfigurationError: Two components have the same name, an option is out of its range, or a component needs
            something that only a trainer has.
        UnknownNameError: No component has this name.
    """

    def __init__(
        self,
        env: TextEnv,
        components: str | Sequence[Component | PartSpec],
        *,
        task_weight: float = 1.0,
        clip: tuple[float, float] | None = None,
    ) -> None:
        written = split_parts(components) if isinstance(components, str) else components
        if not isinstance(written, Sequence):
            raise ConfigurationError(
                "`components` must be a list of reward components (names, functions, or Component(name, score)), not "
                f"{components!r}. Pass a single component in a list: RewardShaping(env, [component])."
            )
        made = [make_component(one) for one in written]
        gym.utils.RecordConstructorArgs.__init__(
            self, _disable_deepcopy=True, components=made, task_weight=task_weight, clip=clip
        )
        super().__init__(env)
        names = ["task", *(component.name for component in made)]
        if len(set(names)) < len(names):
            raise ConfigurationError(f"Reward components need distinct names other than 'task', not {names[1:]}.")
        source = getattr(env.unwrapped, "problems", None)
        self._problems = source if isinstance(source, ProblemSource) else None
        lacking: dict[Need, str] = dict.fromkeys(ALL - PLACES["wrapper"], _ELSEWHERE)
        lacking["judge"] = f"which a wrapper does not provide: {OWN_JUDGE}"
        if self._problems is None:
            lacking["problem"] = _NO_SOURCE
        for component in made:
            component.check()
            check_needs(component, lacking)
        check_bounds(clip)
        self._components, self._task_weight, self._clip = tuple(made), task_weight, clip
        self._episode, self._unjudged = Episode(), False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode."""
        text, info = self.env.reset(seed=seed, options=options)
        self._episode, self._unjudged = Episode(seed=seed).begin(text, info), False
        return text, info

    def step(self, action: str) -> StepReturn:
        """Play a turn; its reward is the sum of the components.

        Raises:
            EpisodeOverError: The episode ended because a judge did not answer.
        """
        if self._unjudged:
            raise EpisodeOverError("The episode is over: call reset() to start a new episode.")
        text, reward, terminated, truncated, info = self.take(action)
        episode = self._episode
        over = episode.step(action, (text, reward, terminated, truncated, info))
        if over and not episode.available:
            log_parts(info, self._nought())
            return text, 0.0, terminated, truncated, info
        parts = {"task": self._task_weight * reward}
        try:
            for component in self._components:
                if over or component.when == "step":
                    problem = None
                    if self._problems is not None and component.takes_problem:
                        problem = self._problems.get(episode.problem_id)
                    value = component.value(episode, RewardContext(info, problem=problem))
                    if value is not None:
                        parts[component.name] = value
        except ServiceError as error:
            return self._without_judge(error, info)
        if over or any(parts.values()):
            log_parts(info, parts)
        return text, clipped(sum(parts.values()), self._clip), terminated, truncated, info

    def _nought(self) -> dict[str, float]:
        return dict.fromkeys(["task", *(component.name for component in self._components)], 0.0)

    def _without_judge(self, error: ServiceError, info: dict[str, Any]) -> StepReturn:
        """End the episode as ``unavailable`` because a judge did not answer; metrics exclude such episodes."""
        _LOG.warning("An episode could not be scored, so it is left out of the metrics: %s", error)
        self._unjudged, episode = True, self._episode
        # Add the keys that an environment sets at the end of an episode, if they are missing.
        said = {
            "answer": episode.answer,
            "turns": episode.turns,
            "tool_errors": sum(status.is_error for status in episode.statuses),
            "tool_calls_total": episode.tool_calls,
            "answer_tags": episode.answer_tags,
        }
        info = {**said, **info, "end": "unavailable", "correct": False, "error": str(error)}
        log_parts(info, self._nought())
        return "", 0.0, False, True, info


_ELSEWHERE = (
    "which a wrapper of one environment does not have. Use the component in the rewards of a trainer, or in the scores "
    "of an evaluation, instead."
)
_NO_SOURCE = (
    "but this environment has no source of problems. Wrap an environment with a source, such as rstar2/MathTool-v0."
)

WRAPPERS.register("reward_shaping", RewardShaping)
