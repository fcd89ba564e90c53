"""``check_reward``: does a component score every episode, of what it declares and nothing else?"""

from __future__ import annotations

import asyncio
import copy
import importlib
import inspect
import math
import pickle
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from rstar2_env.core.episode import Episode
from rstar2_env.core.parts import PartSpec
from rstar2_env.testing.harness import require
from rstar2_env.testing.runner import run_checks
from rstar2_env.testing.training.examples import group_of
from rstar2_env.testing.training.lookup import maker
from rstar2_env.testing.training.plain_play import PlainPlay
from rstar2_env.testing.training.randomness import untouched

NEEDS = frozenset({"group", "lm", "judge"})
REWARDS = (1.0, 0.0, 0.5, 1.0, 0.0)


@dataclass(frozen=True, slots=True)
class RewardHarness:
    """One reward component under test.

    Attributes:
        make: Makes it anew.
        info: The ``info`` of the last step of every episode.
        judge: What a judge answers.
    """

    make: Callable[[], Any]
    info: Mapping[str, Any] = field(default_factory=dict)
    judge: str = "yes"

    def scores(self, group: Sequence[Episode], part: Any = None) -> list[float | None]:
        """The score of each episode of a group, with the context that the component declares, and no more."""
        part = part or self.make()
        needs = frozenset(getattr(part, "needs", ()))
        context = importlib.import_module("rstar2_env.rewards.base").RewardContext
        given = {
            "info": copy.deepcopy(dict(self.info)),
            "group": list(group) if "group" in needs else (),
            "lm": PlainPlay() if "lm" in needs else None,
            "judge": self._judge if "judge" in needs else None,
        }

        async def every() -> list[float | None]:
            return [await _awaited(part(episode, context(**given))) for episode in group]

        return asyncio.run(every())

    async def _judge(self, prompt: str) -> str:
        await asyncio.sleep(0)
        return self.judge


async def _awaited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def needs(harness: RewardHarness) -> None:
    """``needs``, where it has one, is a set of known needs; with none of them it is a plain function."""
    part = harness.make()
    declared: Any = getattr(part, "needs", frozenset())
    require(isinstance(declared, (set, frozenset)), f"needs is {declared!r}; declare a frozenset")
    require(declared <= NEEDS, f"it needs {sorted(map(str, declared - NEEDS))}; known are {', '.join(sorted(NEEDS))}")
    call = part if inspect.isfunction(part) else type(part).__call__
    awaited = inspect.iscoroutinefunction(call) and not declared & {"lm", "judge"}
    require(not awaited, "it is a coroutine and needs neither lm nor judge: a wrapper could not score with it")


def scores(harness: RewardHarness) -> None:
    """It scores right, wrong, graded and short episodes with a finite number, or with ``None``."""
    for rewards in (REWARDS, (1.0,), (0.0, 0.0, 0.0), (1.0, 1.0)):
        try:
            found = harness.scores(group_of(rewards))
        except Exception as error:
            declared = ", ".join(sorted(getattr(harness.make(), "needs", ()))) or "nothing"
            raise AssertionError(
                f"with what it declares ({declared}), it raised {type(error).__name__}: {error}"
            ) from error
        for value in found:
            number = value is None or (isinstance(value, (int, float)) and math.isfinite(value))
            require(number, f"it scored an episode with {value!r}; return a finite number, or None for no score")


def purity(harness: RewardHarness) -> None:
    """Episode and context decide alone: the same score again, nothing changed, no global random state."""
    group = group_of(REWARDS)
    before = copy.deepcopy(group)
    part = harness.make()
    with untouched():
        first = harness.scores(group, part)
    require(group == before, "it changed an episode")
    require(harness.scores(group, part) == first, "asked twice, it scores otherwise")


def order(harness: RewardHarness) -> None:
    """The order of the episodes in their group does not matter."""
    group = group_of(REWARDS)
    forth, back = harness.scores(group), harness.scores(group[::-1])[::-1]
    close = all(
        (one is None) == (other is None) and (one is None or other is None or math.isclose(one, other, abs_tol=1e-9))
        for one, other in zip(forth, back, strict=True)
    )
    require(close, f"in another order the scores are {back} and not {forth}")


def pickling(harness: RewardHarness) -> None:
    """Pickled, it scores the same."""
    group = group_of(REWARDS)
    twin = pickle.loads(pickle.dumps(harness.make()))
    require(harness.scores(group, twin) == harness.scores(group), "its pickle scores otherwise")


REWARD_CHECKS: Mapping[str, Callable[[RewardHarness], None]] = MappingProxyType(
    {check.__name__: check for check in (needs, scores, purity, order, pickling)}
)
"""Every check by its name; the first line of each docstring is the clause."""


def check_reward(
    reward: PartSpec | object,
    *,
    info: Mapping[str, Any] | None = None,
    judge: str = "yes",
    skip: Collection[str] = (),
    **options: Any,
) -> list[str]:
    """Check a reward component against its contract (docs/add-a-trainer.md). Needs no pytest, no torch and no model.

    Args:
        reward: A name as a recipe writes it (``"tool_use:each=0.05"``, ``"./mine.py:Name"``), a class, or the component
            itself, an object or a function.
        info: The ``info`` of the last step, for one that reads it.
        judge: What the judge answers, for one that needs one.
        skip: Names of checks to leave out; see ``rstar2_env.testing.REWARD_CHECKS``.
        **options: Of the component, with a name or a class.

    Returns:
        The names of the checks that were made.

    Raises:
        ConformanceError: The component breaks the contract; the message lists every clause that it breaks.
        UnknownNameError: There is no component of that name, or ``skip`` names no check.
        ConfigurationError: The options do not fit.
    """
    what, make = maker("reward", reward, options)
    make()  # an error about its options is raised unchanged
    harness = RewardHarness(make, info or {}, judge)
    return run_checks(f"The reward component {what}", REWARD_CHECKS, harness, skip=skip)
