"""``Component``: one named part of a reward, with a weight, a gate and bounds, and how a configuration writes it."""

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
from rstar2_env.rewards.base import REWARDS, Need, OnTurns, Reward, RewardContext, RewardJudge, Score, needs_of
from rstar2_env.rewards.judges import make_reward_judge

Gate: TypeAlias = "Literal['always', 'correct', 'wrong'] | Callable[[Episode, RewardContext], bool]"


@dataclass(frozen=True, slots=True)
class Component:
    """One named part of a reward.

    Attributes:
        name: As ``info["reward_components"]`` and ``Episode.rewards`` show it.
        score: Computes the value.
        weight: Factor on it.
        gate: When it counts: ``"always"``, only in ``"correct"`` or ``"wrong"`` episodes, or what a function says. A
            part whose gate is shut is worth 0.
        clip: Lowest and highest value before the weight; ``None`` for no bounds.
        when: ``"end"`` pays once, at the end; ``"step"`` at every turn, which a wrapper can and a trainer cannot.
        judge: The judge that its score asks; ``None`` asks the one of the context, which a trainer's run has.
    """

    name: str
    score: Reward
    weight: float = 1.0
    gate: Gate = "always"
    clip: tuple[float, float] | None = None
    when: Literal["end", "step"] = "end"
    judge: RewardJudge | None = None

    @property
    def needs(self) -> frozenset[Need]:
        """Needs of its score in addition to the episode and its own judge."""
        return needs_of(self.score) - ({"judge"} if self.judge is not None else set())

    def value(self, episode: Episode, ctx: RewardContext) -> float | None:
        """The weighted value; 0 behind a closed gate, ``None`` if there is nothing to score.

        A score that is a coroutine runs to its end here; in an event loop, await ``avalue`` instead.

        Raises:
            ConfigurationError: The score is not a finite number, or is one for each turn.
            ServiceError: Its judge did not answer.
        """
        found = self.found(episode, ctx)
        if inspect.isawaitable(found):
            from rstar2_env.core.blocking import run_blocking  # asyncio is not for those who list parts

            awaited = found
            found = run_blocking(lambda: _result(awaited))
        if isinstance(found, OnTurns):
            raise ConfigurationError(
                f"The reward component {self.name!r} scores turn by turn, which only a trainer pays; name it among the "
                "trainer's rewards."
            )
        return found

    async def avalue(self, episode: Episode, ctx: RewardContext) -> Score:
        """The same for a coroutine, and for a score that may have a number for each turn.

        Raises:
            ConfigurationError: The score is not a finite number.
            ServiceError: Its judge did not answer.
        """
        found = self.found(episode, ctx)
        return await found if inspect.isawaitable(found) else found

    def found(self, episode: Episode, ctx: RewardContext) -> Score | Awaitable[Score]:
        """The weighted score, to be awaited where the score itself must be."""
        if not self._open(episode, ctx):
            return 0.0
        score = self.score(episode, ctx if self.judge is None else replace(ctx, judge=self.judge))
        return self._awaited(score) if inspect.isawaitable(score) else self._weighted(score)

    def check(self) -> None:
        """Check what annotations cannot say.

        Raises:
            ConfigurationError: A field does not fit.
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
            raise ConfigurationError(f"{self.name!r} is paid at 'end' or 'step', not {self.when!r}.")
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
            raise ConfigurationError(f"The reward component {self.name!r} gave {score!r}; expected a finite number.")
        return self.weight * clipped(value, self.clip)


def make_component(written: Component | PartSpec, **given: Any) -> Component:
    """A part of a reward, as a configuration writes it.

    Args:
        written: A name of ``REWARDS``, or one's own code, with options
            ("tool_use:each=0.05,weight=2,gate=correct"), in any form of ``rstar2_env.core.options.parts``: those of the
            score, and beside them ``weight``, ``gate``, ``clip``, ``when``, ``label`` (the component's name, where it
            is not that of the score) and ``judge`` (the one that it asks, "(model:url=...,model=...)"). Or a score
            itself.
        **given: Options of the score that the caller knows, for a class that takes them; those in ``written`` override
            them.

    Raises:
        UnknownNameError: There is no component of that name.
        ConfigurationError: An option does not fit.
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
            f"The {what} is a function and takes {', '.join(OF_COMPONENT)}, not {', '.join(own)}: make it a class for "
            "options of its own."
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
    """Placeholder for a score when only the component's own options matter."""


OF_COMPONENT = ("label", "weight", "gate", "clip", "when", "judge")
"""Options of every component, in addition to those of its score."""


def component_options(options: Mapping[str, Any], *, prefix: str) -> dict[str, Any]:
    """Those of the options that are of ``OF_COMPONENT``, typed and checked; ``prefix`` goes before them in messages."""
    paid = {name: value for name, value in options.items() if name in OF_COMPONENT}
    return typed_options("reward component", partial(_component, _unscored, ""), paid, prefix=prefix)


def check_bounds(bounds: Any) -> None:
    """Check a clip.

    Raises:
        ConfigurationError: It is neither ``None`` nor a pair of numbers in order.
    """
    if bounds is None:
        return
    pair = isinstance(bounds, Sequence) and len(bounds) == 2
    if not (pair and all(isinstance(bound, (int, float)) for bound in bounds) and bounds[0] <= bounds[1]):
        raise ConfigurationError(f"clip must be a pair of numbers (lowest, highest), not {bounds!r}.")


def clipped(value: float, bounds: tuple[float, float] | None) -> float:
    """The value, or the bound that it passes."""
    return value if bounds is None else min(max(value, bounds[0]), bounds[1])
