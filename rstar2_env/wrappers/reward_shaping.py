"""``RewardShaping``: a reward made of named parts, each logged apart.

Covered: weights, gates, clips of each part and of the sum; parts paid at the end or at every turn. Not covered: parts
that compare the episodes of a group, which a trainer's reward or advantage must do.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

import gymnasium as gym

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.option_text import split_parts
from rstar2_env.core.options import call_with_options
from rstar2_env.core.parts import PartSpec, read_part
from rstar2_env.wrappers.base import Step, TextEnv, TextWrapper, log_parts
from rstar2_env.wrappers.components import COMPONENTS, Score
from rstar2_env.wrappers.registry import WRAPPERS

Gate: TypeAlias = "Literal['always', 'correct', 'wrong'] | Callable[[Episode, Mapping[str, Any]], bool]"


@dataclass(frozen=True, slots=True)
class Component:
    """One named part of a reward.

    Attributes:
        name: As ``info["reward_components"]`` shows it; ``task`` is the environment's own reward.
        score: What it is worth.
        weight: Factor on it.
        gate: When it counts: ``"always"``, only in ``"correct"`` or ``"wrong"`` episodes, or what a function says. A
            part whose gate is shut is worth 0.
        clip: Lowest and highest value before the weight; ``None`` for no bounds.
        when: ``"end"`` pays once, at the end; ``"step"`` at every turn.
    """

    name: str
    score: Score
    weight: float = 1.0
    gate: Gate = "always"
    clip: tuple[float, float] | None = None
    when: Literal["end", "step"] = "end"

    def value(self, episode: Episode, info: Mapping[str, Any]) -> float:
        """The weighted value; 0 behind a shut gate.

        Raises:
            ConfigurationError: The score is not a finite number.
        """
        if not self._open(episode, info):
            return 0.0
        score = float(self.score(episode, info))
        if not math.isfinite(score):
            raise ConfigurationError(f"The reward component {self.name!r} gave {score}; expected a finite number.")
        return self.weight * _clipped(score, self.clip)

    def _open(self, episode: Episode, info: Mapping[str, Any]) -> bool:
        if callable(self.gate):
            return bool(self.gate(episode, info))
        return self.gate == "always" or episode.correct == (self.gate == "correct")


def make_component(written: Component | PartSpec) -> Component:
    """A part of a reward, as a configuration writes it.

    Args:
        written: A name of ``COMPONENTS``, or one's own code, with options
            ("tool_use:each=0.05,weight=2,gate=correct"), in any form of ``rstar2_env.core.parts``: those of the score,
            and beside them ``weight``, ``gate``, ``clip``, ``when`` and ``label`` (the component's name, where it is
            not that of the score). Or a score itself.

    Raises:
        UnknownNameError: There is no component of that name.
        ConfigurationError: An option does not fit.
    """
    if isinstance(written, Component):
        return written
    part = read_part(written, COMPONENTS.kind)
    found: Any = part.made_by or COMPONENTS.get(part.name)
    what = f"{COMPONENTS.kind} {part.name!r}"
    own = {name: value for name, value in part.options.items() if name not in _OF_COMPONENT}
    if inspect.isclass(found):
        found = call_with_options(what, found, own)
    elif own:
        raise ConfigurationError(
            f"The {what} is a function and takes {', '.join(_OF_COMPONENT)}, not {', '.join(own)}: make it a class for "
            "options of its own."
        )
    paid = {name: value for name, value in part.options.items() if name in _OF_COMPONENT}
    label = part.name.rpartition(":")[2]
    return call_with_options(what, partial(_component, found, label), paid)


def _component(
    score: Score,
    name: str,
    *,
    label: str = "",
    weight: float = 1.0,
    gate: Literal["always", "correct", "wrong"] = "always",
    clip: tuple[float, float] | None = None,
    when: Literal["end", "step"] = "end",
) -> Component:
    return Component(label or name, score, weight, gate, clip, when)


_OF_COMPONENT = ("label", "weight", "gate", "clip", "when")


class RewardShaping(TextWrapper, gym.utils.RecordConstructorArgs):
    """Replaces the reward by the weighted sum of the environment's own and further parts.

    ``info["reward_components"]`` of every step that pays something, and of the end, has each part's weighted value;
    their sum, clipped, is the reward. What the environment itself logged as parts of its own comes with it as
    ``task/<name>``, and is in ``task`` already. An ``unavailable`` episode ends with 0, whatever the parts say.

    Args:
        env: A text environment.
        components: The further parts, with distinct names; each a ``Component`` or what ``make_component`` takes, or
            all in one text ("(tool_use:each=0.05,gate=correct)+answer_format").
        task_weight: Factor on the environment's own reward.
        clip: Lowest and highest reward of one step.

    Raises:
        ConfigurationError: Two parts have the same name, or an option is out of its range.
        UnknownNameError: There is no component of that name.
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
                "components must be a list of reward components (names, functions, or Component(name, score)), not "
                f"{components!r}. A single one goes in brackets: RewardShaping(env, [component])."
            )
        made = [make_component(one) for one in written]
        gym.utils.RecordConstructorArgs.__init__(
            self, _disable_deepcopy=True, components=made, task_weight=task_weight, clip=clip
        )
        super().__init__(env)
        names = ["task", *(component.name for component in made)]
        if len(set(names)) < len(names):
            raise ConfigurationError(f"Reward components need distinct names, none of them 'task': {names[1:]}.")
        for component in made:
            if not callable(component.score):
                raise ConfigurationError(
                    f"The score of {component.name!r} must be a function of the episode and its last info that returns "
                    f"a number, not {component.score!r}."
                )
            if not callable(component.gate) and component.gate not in ("always", "correct", "wrong"):
                raise ConfigurationError(
                    f"The gate of {component.name!r} must be 'always', 'correct', 'wrong' or a function, not "
                    f"{component.gate!r}."
                )
            if component.when not in ("end", "step"):
                raise ConfigurationError(f"{component.name!r} is paid at 'end' or 'step', not {component.when!r}.")
        for bounds in (clip, *(component.clip for component in made)):
            if bounds is not None and not _are_bounds(bounds):
                raise ConfigurationError(f"clip must be a pair of numbers (lowest, highest), not {bounds!r}.")
        self._components, self._task_weight, self._clip = tuple(made), task_weight, clip
        self._episode = Episode()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode."""
        text, info = self.env.reset(seed=seed, options=options)
        self._episode = Episode(seed=seed).begin(text, info)
        return text, info

    def step(self, action: str) -> Step:
        """Play a turn; its reward is the sum of the parts."""
        text, reward, terminated, truncated, info = self.take(action)
        episode = self._episode
        over = episode.step(action, (text, reward, terminated, truncated, info))
        if over and not episode.available:
            parts = dict.fromkeys(["task", *(component.name for component in self._components)], 0.0)
            log_parts(info, parts)
            return text, 0.0, terminated, truncated, info
        parts = {"task": self._task_weight * reward}
        for component in self._components:
            if over or component.when == "step":
                parts[component.name] = component.value(episode, info)
        if over or any(parts.values()):
            log_parts(info, parts)
        return text, _clipped(sum(parts.values()), self._clip), terminated, truncated, info


def _are_bounds(value: Any) -> bool:
    if not isinstance(value, Sequence) or len(value) != 2:
        return False
    return all(isinstance(bound, (int, float)) for bound in value) and value[0] <= value[1]


def _clipped(value: float, bounds: tuple[float, float] | None) -> float:
    return value if bounds is None else min(max(value, bounds[0]), bounds[1])


WRAPPERS.register("reward_shaping", RewardShaping)
