"""``check_reward``: checks that a component scores every episode, and reads only context that its ``needs`` names."""

from __future__ import annotations

import asyncio
import copy
import inspect
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from rstar2_env.core.episode import Episode
from rstar2_env.core.options.parts import PartSpec
from rstar2_env.problems.problem import Problem
from rstar2_env.rewards.base import RewardContext, takes_problem
from rstar2_env.testing.harness import require
from rstar2_env.testing.randomness import untouched
from rstar2_env.testing.runner import by_name
from rstar2_env.testing.training.examples import group_of, outcomes_of
from rstar2_env.testing.training.lookup import check_part, pickled, resumed
from rstar2_env.testing.training.plain_play import PlainPlay

NEEDS = frozenset({"group", "judge", "lm", "play", "problem", "tokens"})
PROBLEM = Problem("sum", "6 times 7?", "42")
REWARDS = (1.0, 0.0, 0.5, 1.0, 0.0)


@dataclass(frozen=True, slots=True)
class RewardHarness:
    """One reward component under test.

    Attributes:
        make: Function that makes a new component.
        info: The ``info`` of the last step of every episode.
        judge: Answer of the judge to every question.
        problem: The problem of every episode.
    """

    make: Callable[[], Any]
    info: Mapping[str, Any] = field(default_factory=dict)
    judge: str = "yes"
    problem: Problem = PROBLEM

    def scores(self, group: Sequence[Episode], part: Any = None) -> list[float | Sequence[float] | None]:
        """Return the score of each episode of a group; the component receives only the context that it declares.

        Args:
            group: The episodes.
            part: The component; ``None`` makes a new one.
        """
        part = part or self.make()
        needs = frozenset(getattr(part, "needs", ()))
        play = PlainPlay()
        play.played += group
        given: dict[str, Any] = {
            "info": copy.deepcopy(dict(self.info)),
            "group": list(group) if "group" in needs else (),
            "lm": play if "lm" in needs else None,
            "judge": self._judge if "judge" in needs else None,
            "problem": self.problem if takes_problem(part) else None,
            "play": play if "play" in needs else None,
        }

        async def every() -> list[float | Sequence[float] | None]:
            return [await _awaited(part(episode, RewardContext(**given))) for episode in group]

        return asyncio.run(every())

    async def _judge(self, prompt: str) -> str:
        await asyncio.sleep(0)
        return self.judge


async def _awaited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def needs(harness: RewardHarness) -> None:
    """Check that ``needs`` has only known names; a coroutine function must declare ``lm``, ``judge`` or ``play``."""
    part = harness.make()
    declared: Any = getattr(part, "needs", frozenset())
    require(isinstance(declared, (set, frozenset)), f"`needs` is {declared!r}; declare a frozenset")
    require(
        declared <= NEEDS,
        f"it declares the unknown needs {sorted(map(str, declared - NEEDS))}; known needs: {', '.join(sorted(NEEDS))}",
    )
    call = part if inspect.isfunction(part) else type(part).__call__
    awaited = inspect.iscoroutinefunction(call) and not declared & {"lm", "judge", "play"}
    require(
        not awaited,
        "it is a coroutine function, but declares none of the needs lm, judge and play; make it a plain function",
    )


def scores(harness: RewardHarness) -> None:
    """Check that the score of any episode is a finite number, one finite number for each turn, or ``None``."""
    for rewards in (REWARDS, (1.0,), (0.0, 0.0, 0.0), (1.0, 1.0)):
        try:
            found = harness.scores(group_of(rewards))
        except Exception as error:
            declared = ", ".join(sorted(getattr(harness.make(), "needs", ()))) or "nothing"
            raise AssertionError(
                f"given only what it declares ({declared}), the component raised {type(error).__name__}: {error}"
            ) from error
        for episode, value in zip(group_of(rewards), found, strict=True):
            each = [value] if isinstance(value, (int, float)) else list(value or ())
            number = all(isinstance(one, (int, float)) and math.isfinite(one) for one in each)
            require(number, f"it scored an episode with {value!r}; return a finite number, or None for no score")
            turns = not isinstance(value, tuple) or len(value) == len(episode.steps)
            require(
                turns,
                f"it scored {len(each)} turns of {len(episode.steps)}; OnTurns must have one number for each turn",
            )


def purity(harness: RewardHarness) -> None:
    """Check that the score depends only on episode and context, and that scoring changes no state."""
    group = group_of(REWARDS)
    before = copy.deepcopy(group)
    part = harness.make()
    with untouched():
        first = harness.scores(group, part)
    require(group == before, "it changed an episode")
    require(harness.scores(group, part) == first, "a second call returns different scores")


def order(harness: RewardHarness) -> None:
    """Check that the order of the episodes in their group does not matter."""
    group = group_of(REWARDS)
    forth, back = harness.scores(group), harness.scores(group[::-1])[::-1]
    close = all(_close(one, other) for one, other in zip(forth, back, strict=True))
    require(close, f"for the same episodes in another order, the scores are {back}, not {forth}")


def _close(one: float | Sequence[float] | None, other: float | Sequence[float] | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.shape(one) == np.shape(other) and np.allclose(one, other, rtol=1e-9, atol=1e-9)


def learning(harness: RewardHarness) -> None:
    """Check that a component with ``observe`` has a JSON state, and that a copy with this state gives equal scores."""
    part, twin = harness.make(), harness.make()
    if not hasattr(part, "observe"):
        return
    require(
        hasattr(part, "state_dict"),
        "it has observe, but no state_dict; add it, so that a resumed run gives the same scores",
    )
    for _ in range(3):
        part.observe(outcomes_of([REWARDS, (1.0, 1.0, 0.0), (0.0, 0.0)]))
    resumed(part, twin)
    group = group_of(REWARDS)
    same = harness.scores(group, twin) == harness.scores(group, part)
    require(same, "another component that loaded its state returns different scores")


def pickling(harness: RewardHarness) -> None:
    """Check that a pickled copy of the component returns the same scores."""
    group = group_of(REWARDS)
    require(
        harness.scores(group, pickled(harness.make())) == harness.scores(group),
        "its unpickled copy returns different scores",
    )


REWARD_CHECKS = by_name(needs, scores, purity, order, learning, pickling)
"""Checks by name; the first line of a check's docstring describes the check."""


def check_reward(
    reward: PartSpec | object,
    *,
    info: Mapping[str, Any] | None = None,
    judge: str = "yes",
    problem: Problem | None = None,
    skip: Collection[str] = (),
    **options: Any,
) -> list[str]:
    """Check a reward component against its contract (docs/part-interfaces.md). Needs no pytest, no torch and no model.

    Args:
        reward: A name as a recipe writes it (``"tool_use:each=0.05"``, ``"./mine.py:Name"``), a class, or the component
            itself, an object or a function.
        info: The ``info`` of the last step, for a component that reads it.
        judge: Answer of the judge, for a component that needs a judge.
        problem: The problem, for a component that needs it; by default a sum, the problem of the example
            episodes.
        skip: Names of checks to leave out; see ``rstar2_env.testing.REWARD_CHECKS``.
        **options: Options of the component, when it is given as a name or a class.

    Returns:
        The names of the checks that were made.

    Raises:
        ConformanceError: The component breaks the contract; the message lists every clause that it breaks.
        UnknownNameError: There is no component with this name, or ``skip`` contains a name that is not a check.
        ConfigurationError: An option is unknown or invalid.
    """
    harness = partial(RewardHarness, info=info or {}, judge=judge, problem=problem or PROBLEM)
    return check_part("reward", reward, options, REWARD_CHECKS, harness, skip=skip, kind="reward component")
