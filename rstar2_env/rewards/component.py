"""``Component``: one named part of a reward, with a weight, a gate and bounds, and its notation in a configuration."""

from __future__ import annotations

import inspect
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeAlias

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import call_with_options, typed_options
from rstar2_env.core.options.parts import PartSpec, read_part
from rstar2_env.rewards.base import (
    REWARDS,
    Need,
    OnTurns,
    Reward,
    RewardContext,
    RewardJudge,
    Score,
    needs_of,
    takes_problem,
)
from rstar2_env.rewards.judges import make_reward_judge
from rstar2_env.rewards.text_function import as_score

Gate: TypeAlias = "Literal['always', 'correct', 'wrong'] | Callable[[Episode, RewardContext], bool]"


@dataclass(frozen=True, slots=True)
class Component:
    """One named part of a reward.

    Attributes:
        name: Name in ``info["reward_components"]`` and ``Episode.rewards``.
        score: Computes the value: a function or object called with an episode and its context, or a function of texts
            with a parameter ``completions``; see ``TextFunction``.
        weight: Factor on the value.
        gate: When the component counts: ``"always"``, only in ``"correct"`` or ``"wrong"`` episodes, or if a given
            function returns true. Otherwise (the gate is closed) its value is 0.
        clip: Minimum and maximum value before the weight; ``None`` for no bounds.
        when: ``"end"`` scores the episode once, at its end; ``"step"`` scores every turn, and works only in a wrapper.
        judge: The judge that the score uses; ``None`` uses the judge of the context, such as the training run's judge.
    """

    name: str
    score: Reward
    weight: float = 1.0
    gate: Gate = "always"
    clip: tuple[float, float] | None = None
    when: Literal["end", "step"] = "end"
    judge: RewardJudge | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "score", as_score(self.score))

    @property
    def needs(self) -> frozenset[Need]:
        """The inputs that the score needs in addition to the episode; no ``judge`` if the component has its own."""
        return needs_of(self.score) - ({"judge"} if self.judge is not None else set())

    @property
    def takes_problem(self) -> bool:
        """Whether the score receives the problem if the environment has a source of problems."""
        return takes_problem(self.score)

    def value(self, episode: Episode, ctx: RewardContext) -> float | None:
        """Return the weighted value; 0 with a closed gate, ``None`` if there is nothing to score.

        A coroutine score runs to its end here; in an event loop, await ``avalue`` instead.

        Raises:
            ConfigurationError: The score is not a finite number, or has one number per turn.
            ServiceError: The judge did not answer.
        """
        found = self.found(episode, ctx)
        if inspect.isawaitable(found):
            from rstar2_env.core.blocking import run_blocking  # listing parts must not load asyncio

            awaited = found
            found = run_blocking(lambda: _result(awaited))
        if isinstance(found, OnTurns):
            raise ConfigurationError(
                f"The reward component {self.name!r} gives one score per turn, which only a trainer "
                "supports: use it among the rewards of a trainer."
            )
        return found

    async def avalue(self, episode: Episode, ctx: RewardContext) -> Score:
        """Return the weighted value as ``value`` does, or ``OnTurns`` if the score has one number per turn.

        Raises:
            ConfigurationError: The score is not a finite number.
            ServiceError: The judge did not answer.
        """
        found = self.found(episode, ctx)
        return await found if inspect.isawaitable(found) else found

    def found(self, episode: Episode, ctx: RewardContext) -> Score | Awaitable[Score]:
        """Return the weighted score, or an awaitable of it if the score is a coroutine."""
        if not self._open(episode, ctx):
            return 0.0
        score = self.score(episode, ctx if self.judge is None else replace(ctx, judge=self.judge))
        return self._awaited(score) if inspect.isawaitable(score) else self._weighted(score)

    def check(self) -> None:
        """Check the values of the fields, such as the order of the bounds in ``clip``.

        Raises:
            ConfigurationError: A field is not valid.
        """
        if not callable(self.score):
            raise ConfigurationError(
                f"The score of {self.name!r} must be a function of the episode and its context that returns a number, "
                f"not {self.score!r}."
            )
        if not callable(self.gate) and self.gate not in ("always", "correct", "wrong"):
            raise ConfigurationError(
                f"The gate of {self.name!r} must be 'always', 'correct', 'wrong' or a function, not {self.gate!r}."
            )
        if self.when not in ("end", "step"):
            raise ConfigurationError(f"The option `when` of {self.name!r} must be 'end' or 'step', not {self.when!r}.")
        check_bounds(self.clip)
        needs_of(self.score)

    def _open(self, episode: Episode, ctx: RewardContext) -> bool:
        if callable(self.gate):
            return bool(self.gate(episode, ctx))
        return self.gate == "always" or episode.correct == (self.gate == "correct")

    async def _awaited(self, score: Awaitable[Score]) -> Score:
        return self._weighted(await score)

    def _weighted(self, score: Score) -> Score:
        if score is None:
            return None
        if isinstance(score, OnTurns):
            return OnTurns(self._number(one) for one in score)
        return self._number(score)

    def _number(self, score: float) -> float:
        try:
            value = float(score)
        except (TypeError, ValueError):
            value = math.nan
        if not math.isfinite(value):
            raise ConfigurationError(
                f"The reward component {self.name!r} returned {score!r}; expected a finite number."
            )
        return self.weight * clipped(value, self.clip)


def make_component(written: Component | PartSpec, **given: Any) -> Component:
    """Create a component of a reward from its notation in a configuration.

    Args:
        written: A name in ``REWARDS``, or the user's own code, with options
            ("tool_use:each=0.05,weight=2,gate=correct"), in any form of ``rstar2_env.core.options.parts``. In addition
            to the score's own options, there are ``weight``, ``gate``, ``clip``, ``when``, ``label`` (the component's
            name, if it differs from the score's name) and ``judge`` ("(model:url=...,model=...)"). A score or a
            ``Component`` may also be passed as an object.
        **given: Further options of the score, if it is a class; an option that the class does not have is ignored.
            Options in ``written`` override them.

    Raises:
        UnknownNameError: The component does not exist.
        ConfigurationError: An option is not valid.
    """
    if isinstance(written, Component):
        return written
    part = read_part(written, REWARDS.kind)
    found: Any = part.made_by or REWARDS.get(part.name)
    what = f"{REWARDS.kind} {part.name!r}"
    own = {name: value for name, value in part.options.items() if name not in OF_COMPONENT}
    if inspect.isclass(found):
        taken = inspect.signature(found).parameters
        own = {**{name: value for name, value in given.items() if name in taken}, **own}
        found = call_with_options(what, found, own)
    elif own:
        raise ConfigurationError(
            f"The {what} is a function, so it accepts only the options {', '.join(OF_COMPONENT)}, not "
            f"{', '.join(own)}. To give it other options, write it as a class."
        )
    paid = {name: value for name, value in part.options.items() if name in OF_COMPONENT}
    label = part.name.rpartition(":")[2]
    return call_with_options(what, partial(_component, found, label), paid)


def _component(
    score: Reward,
    name: str,
    *,
    label: str = "",
    weight: float = 1.0,
    gate: Literal["always", "correct", "wrong"] = "always",
    clip: tuple[float, float] | None = None,
    when: Literal["end", "step"] = "end",
    judge: Any = None,
) -> Component:
    asked = None if judge is None else make_reward_judge(judge)
    return Component(label or name, score, weight, gate, clip, when, asked)


async def _result(score: Awaitable[Score]) -> Score:
    return await score


def _unscored(episode: Episode, ctx: RewardContext) -> None:
    """Placeholder for a score, used to check only the options in ``OF_COMPONENT``."""


OF_COMPONENT = ("label", "weight", "gate", "clip", "when", "judge")
"""Options of every component, in addition to the options of its score."""


def component_options(options: Mapping[str, Any], *, prefix: str) -> dict[str, Any]:
    """Return the options in ``OF_COMPONENT``, typed and checked; ``prefix`` precedes their names in messages."""
    paid = {name: value for name, value in options.items() if name in OF_COMPONENT}
    return typed_options("reward component", partial(_component, _unscored, ""), paid, prefix=prefix)


def check_bounds(bounds: Any) -> None:
    """Check the bounds of the option ``clip``.

    Raises:
        ConfigurationError: The bounds are neither ``None`` nor a pair of numbers, minimum first.
    """
    if bounds is None:
        return
    pair = isinstance(bounds, Sequence) and len(bounds) == 2
    if not (pair and all(isinstance(bound, (int, float)) for bound in bounds) and bounds[0] <= bounds[1]):
        raise ConfigurationError(f"`clip` must be a pair of numbers (lowest, highest), not {bounds!r}.")


def clipped(value: float, bounds: tuple[float, float] | None) -> float:
    """Return the value, limited to the bounds."""
    return value if bounds is None else min(max(value, bounds[0]), bounds[1])
