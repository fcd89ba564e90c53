"""What a reward component is: it scores one episode, and says what beside the episode it needs for that.

A component that needs nothing scores inside an environment's wrapper as well as in a trainer. One that needs the other
episodes of the group, the policy's log-probabilities or a judge scores in a trainer only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, get_args

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.own_code import Shape, is_class_with
from rstar2_env.core.registry import Registry

Need: TypeAlias = Literal["group", "lm", "judge"]
"""What a component may need: the episodes of the group, the policy's log-probabilities, a judge."""


class LanguageModel(Protocol):
    """The policy, as a component that needs ``lm`` sees it."""

    async def score(self, prompt_ids: Sequence[int], ids: Sequence[int]) -> list[float]:
        """Return the log-probability of each of ``ids`` after ``prompt_ids`` and those before it."""
        ...


class Judge(Protocol):
    """A model that is asked for a verdict: text in, text out."""

    async def __call__(self, prompt: str) -> str:
        """Return its answer."""
        ...


@dataclass(frozen=True, slots=True)
class RewardContext:
    """What a component may look at beside the episode.

    Attributes:
        info: The ``info`` of the episode's last step.
        group: The episodes of its group that count, itself among them; ``reward`` is the environment's return in each.
            Empty for a component that does not need it.
        lm: The policy; ``None`` for a component that does not need it.
        judge: The judge; ``None`` for a component that does not need it.
    """

    info: Mapping[str, Any] = field(default_factory=dict)
    group: Sequence[Episode] = ()
    lm: LanguageModel | None = None
    judge: Judge | None = None


Reward: TypeAlias = Callable[[Episode, RewardContext], "float | Awaitable[float | None] | None"]
"""Scores an episode; ``episode.reward`` is the environment's own return. ``None`` says that there is nothing to score.
An attribute ``needs``, a set of ``Need``, says what of the context it reads; one that needs ``lm`` or ``judge`` may
be a coroutine. For an environment to be pickled, it must be a function of a module, or an object of a class of one."""

REWARDS: Registry[Callable[..., Reward]] = Registry(
    "reward component",
    "rstar2_env.rewards",
    "rstar2_env.rewards",
    shape=Shape(is_class_with("__call__"), "a class whose objects are called with (episode, ctx)"),
)


def _name(score: object) -> str:
    return str(getattr(score, "__qualname__", type(score).__qualname__))


def needs_of(score: object) -> frozenset[Need]:
    """What a component needs beside the episode.

    Raises:
        ConfigurationError: It declares a need that there is not.
    """
    needs = frozenset(getattr(score, "needs", ()))
    if unknown := needs - set(get_args(Need)):
        raise ConfigurationError(
            f"The reward component {_name(score)!r} needs {', '.join(sorted(map(repr, unknown)))}; a component may "
            f"need {', '.join(map(repr, get_args(Need)))}."
        )
    return needs
