"""The protocol of reward components: each scores one episode and declares the further inputs that it needs.

A component that needs none works inside an environment's wrapper, in an evaluation and in a trainer. A component that
needs a judge works if a judge is configured. A component that needs the problem works if the environment has a source
of problems. A component that needs the other episodes of the group works in an evaluation and in a trainer. A component
that needs tokens, the policy or further episodes works in an evaluation of a model and in a trainer. ``needs.PLACES``
is the table of these rules.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, get_args, runtime_checkable

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.registry import Registry
from rstar2_env.core.options.user_code import Shape, is_class_with
from rstar2_env.problems.problem import Problem

Need: TypeAlias = Literal["group", "judge", "lm", "play", "problem", "tokens"]
"""An input that a component needs: the group's episodes (``group``), a judge (``judge``), the policy's
log-probabilities (``lm``), further episodes (``play``), the problem with its gold answer (``problem``), or the
episode's tokens (``tokens``)."""


class LanguageModel(Protocol):
    """Interface to the policy (log-probabilities, tokenizer) for a component that needs ``lm``."""

    async def score(self, prompt_ids: Sequence[int], ids: Sequence[int]) -> list[float]:
        """Return the log-probability of each token id in ``ids``, given ``prompt_ids`` and the preceding ids."""
        ...

    def encode(self, text: str) -> list[int]:
        """Return the token ids of a text, without special tokens."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of token ids."""
        ...


class Plays(Protocol):
    """Interface through which a component that needs ``play`` plays further episodes."""

    async def branch(self, episode: Episode, token: int, n: int) -> list[Episode]:
        """Play ``n`` episodes that share the beginning of ``episode``; their ``reward`` is the environment's return.

        Args:
            episode: An episode of the group that is being scored.
            token: Number of tokens of ``completion_ids`` to share, up to the start of a turn or a place within a turn.
            n: Number of episodes.
        """
        ...


class OnTurns(tuple[float, ...]):
    """A score with one number per turn of the episode.

    Each number is added to the advantage of its own turn's tokens only. The episode's reward, which is compared within
    the group, does not include these numbers.
    """


class RewardJudge(Protocol):
    """Protocol of a judge: a model that receives a prompt as text, and replies with text."""

    async def __call__(self, prompt: str) -> str:
        """Return the model's answer."""
        ...


@dataclass(frozen=True, slots=True)
class RewardContext:
    """The inputs of a component in addition to the episode.

    Attributes:
        info: The ``info`` of the episode's last step.
        group: The available episodes of the group, including the scored episode; their ``reward`` is the environment's
            return. Empty for a component that does not need the group.
        lm: The policy; ``None`` for a component that does not need it.
        judge: The judge; ``None`` for a component that does not need it.
        problem: The problem that was played; ``None`` for a component that does not need it.
        play: Plays further episodes; ``None`` for a component that does not need it.
    """

    info: Mapping[str, Any] = field(default_factory=dict)
    group: Sequence[Episode] = ()
    lm: LanguageModel | None = None
    judge: RewardJudge | None = None
    problem: Problem | None = None
    play: Plays | None = None


Score: TypeAlias = float | OnTurns | None
Reward: TypeAlias = Callable[[Episode, RewardContext], "Score | Awaitable[Score]"]
"""Function or object that scores an episode; ``episode.reward`` is the environment's own return. A score of ``None``
means that there is nothing to score. The attribute ``needs``, a set of ``Need``, declares the parts of the context that
the component reads. A component that needs ``lm``, ``judge`` or ``play`` may be a coroutine function. An environment
that uses the component can be pickled only if the function, or the class of the object, is defined at the top level of
a module."""


class GroupOutcome(Protocol):
    """The result of one group in a training step; this or another process of the run played the group."""

    @property
    def successes(self) -> int:
        """Number of correct episodes among the available episodes (``Episode.available``)."""
        ...

    @property
    def task(self) -> str:
        """``Episode.task`` of the group's episodes: the kind of their problem."""
        ...

    @property
    def lengths(self) -> Sequence[int]:
        """Number of policy tokens in each available episode."""
        ...


@runtime_checkable
class Learns(Protocol):
    """Protocol of a component whose scores depend on earlier steps; its state is saved in checkpoints."""

    def observe(self, outcomes: Sequence[GroupOutcome]) -> None:
        """Update the state with a training step's groups; every process receives the groups of all processes."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Return the state as JSON-compatible values."""
        ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Load a state that ``state_dict`` returned."""
        ...


COMPLETIONS = "completions"
"""Name of the parameter by which a function of texts is recognized; see ``TextFunction``."""


def is_text_function(value: object) -> bool:
    """Return whether an object is a function of texts: callable, not a class, with a parameter ``completions``."""
    return callable(value) and not inspect.isclass(value) and COMPLETIONS in parameters_of(value)


def parameters_of(function: Callable[..., object]) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of a callable, keyed by name; empty if the callable has no signature."""
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):  # a callable that is not written in Python may have no signature
        return {}


REWARDS: Registry[Callable[..., Reward]] = Registry(
    "reward component",
    "rstar2_env.rewards",
    "rstar2_env.rewards",
    shape=Shape(
        lambda value: is_class_with("__call__")(value) or is_text_function(value),
        "a class whose objects are called with (episode, ctx), or a function with a parameter `completions`",
    ),
    listed_by="rstar2 list parts reward",
)


def problem_of(ctx: RewardContext, name: str) -> Problem:
    """Return the problem of a context, with its gold answer.

    Args:
        ctx: The context.
        name: Name of the component, for error messages.

    Raises:
        ConfigurationError: The context has no problem, or the problem has no gold answer.
    """
    if ctx.problem is None or not ctx.problem.answer.strip():
        lacking = "this context has no problem" if ctx.problem is None else f"{ctx.problem.id!r} has none"
        raise ConfigurationError(
            f"The reward component {name!r} needs the gold answer of each problem, but {lacking}: choose an "
            "environment whose problems have gold answers."
        )
    return ctx.problem


def takes_problem(score: object) -> bool:
    """Return whether a component gets the problem if there is one: it needs ``problem`` or sets ``takes_problem``."""
    return "problem" in getattr(score, "needs", ()) or bool(getattr(score, "takes_problem", False))


def needs_of(score: object) -> frozenset[Need]:
    """Return the inputs, such as ``"group"`` or ``"lm"``, that a component needs in addition to the episode.

    Raises:
        ConfigurationError: The component declares an unknown need.
    """
    needs = frozenset(getattr(score, "needs", ()))
    if unknown := needs - set(get_args(Need)):
        name = getattr(score, "__qualname__", type(score).__qualname__)
        raise ConfigurationError(
            f"The reward component {name!r} lists {', '.join(sorted(map(repr, unknown)))} in `needs`; "
            f"expected only {', '.join(map(repr, get_args(Need)))}."
        )
    return needs
