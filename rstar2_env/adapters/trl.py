"""Serves a text environment through the argument ``environment_factory`` of TRL's ``GRPOTrainer`` (TRL 1.16).

Covered: every tool of the environment as a typed, documented method with the environment's own chain of middleware
behind it; rewards; the statuses of the calls, which TRL does not count. Not covered: environments whose episode
continues after a turn without a call (the games): TRL ends a rollout there. For such environments, and for events that
TRL's loop cannot report (malformed calls, ends, token budgets), train with ``rstar2_env.trainers``, which plays
``reset`` and ``step``.

TRL passes parsed calls to an environment, but never the final turn. There are two ways to grade the answer: pass
``hand_in`` as a reward function, which plays the final turn in each environment; or pass ``submit=True``, which adds a
tool for the answer.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import gymnasium as gym

from rstar2_env.adapters.base.messages import text_of
from rstar2_env.adapters.base.served import OVER, ServedEnv, start_of, tool_schemas
from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.dialects import Dialect
from rstar2_env.wrappers.make import make_env

_TYPES: Mapping[str, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list,
    "object": dict,
}
_RESERVED = ("reset", "get_reward", "submit_answer")


class TrlEnvironment:
    """One environment in the form that TRL expects; ``environment_factory`` adds a method for each tool.

    Attributes:
        env: The environment that TRL's rollout plays.
    """

    def __init__(self, make: Callable[[], gym.Env[str, str]]) -> None:
        self.env = make()
        self._served = ServedEnv(self.env, "environment_factory")

    @property
    def episode(self) -> Episode:
        """The record of the running episode, with the status of every call, for reward functions to read."""
        return self._served.episode

    def reset(self, **row: Any) -> str:
        """Start the episode of a row of the data set.

        Args:
            row: ``question`` and ``answer`` set the problem, or ``problem_id`` selects one; ``seed`` is the seed of
                ``reset``.

        Returns:
            The user's message, which TRL adds to the row's prompt.

        Raises:
            ConfigurationError: The row has neither a problem nor ``seed``, so the rollouts of a group would play
                different problems.
        """
        options: dict[str, Any] | None
        if row.get("question") is not None and row.get("answer") is not None:
            names = ("id", "question", "answer", "source")
            problem = {name: row[name] for name in names if row.get(name) is not None}
            seed, options = int(row.get("seed") or 0), {"problem": problem}
        else:
            seed, options = start_of(row, "trl", also="question and answer, ")
        # TRL's own prompt decides whether there is a system message; this environment's is not shown.
        return self._served.reset(seed, options, show_system=False)[0]

    def get_reward(self) -> float:
        """Return the episode's return so far."""
        return self.episode.reward

    def _step(self, turn: str) -> str:
        return OVER if self._served.over else self._served.text_of_calls(self._served.play(turn)[0])

    @property
    def _dialect(self) -> Dialect:
        dialect: Dialect = self.env.get_wrapper_attr("dialect")
        return dialect


class _Submitting(TrlEnvironment):
    def submit_answer(self, answer: str) -> str:
        """Give the final answer. This ends the episode.

        Args:
            answer: The final answer alone, without words around it.

        Returns:
            A confirmation.
        """
        self._step(self._dialect.format_answer(answer))
        return "The answer was received."


def environment_factory(
    env: str | Callable[[], gym.Env[str, str]], *, submit: bool = False, **options: Any
) -> type[TrlEnvironment]:
    """Return the class for ``GRPOTrainer(environment_factory=...)``, whose instances are environments.

    Its public methods are ``reset``, ``get_reward`` and exactly the environment's tools (and ``submit_answer``, when
    requested); TRL shows every public method to the model.

    Args:
        env: A registered id, or a function that makes an environment, wrappers included.
        submit: Add the tool ``submit_answer(answer)``, which ends the episode. Without it, pass ``hand_in`` among the
            reward functions.
        **options: Options of ``make_env``, if ``env`` is an id: options of the environment, and ``wrappers``.

    Raises:
        ConfigurationError: The environment is not a tool environment, or a tool cannot be a Python method.
    """
    if not isinstance(env, str):
        if options:
            raise ConfigurationError(
                f"The options {', '.join(options)} apply only to an environment that is given by id: set them in "
                "the function that creates the environment."
            )
        make, name = env, "TextEnvironment"
    else:
        env_id = env
        name = re.sub(r"\W", "_", env_id.rpartition("/")[2].rpartition("-")[0] or env_id)

        def make() -> gym.Env[str, str]:
            return make_env(env_id, **options)

    schemas = tool_schemas(make())
    if schemas is None:
        raise ConfigurationError(
            f"{name} cannot be used in TRL, because it does not have a ToolChain as env.unwrapped.tools."
        )
    members: dict[str, Any] = {schema["function"]["name"]: _method(schema["function"]) for schema in schemas}
    base = _Submitting if submit else TrlEnvironment

    def construct(self: TrlEnvironment) -> None:
        base.__init__(self, make)

    return type(name, (base,), {**members, "__init__": construct, "__doc__": f"{name}, served to TRL."})


def hand_in(
    completions: Sequence[Any], environments: Sequence[TrlEnvironment] | None = None, **columns: Any
) -> list[float | None]:
    """Reward function that plays each rollout's final turn in its environment; ``get_reward`` returns the reward.

    Pass it as ``reward_funcs=[hand_in]``: TRL calls reward functions in their order, and ``get_reward`` last. A rollout
    that ended in a call (its budget ran out) has no final turn, and keeps its return so far.

    Args:
        completions: The completions of a batch, as text or as messages.
        environments: The environment of each completion; TRL passes this argument.
        **columns: Ignored columns of the data set.

    Returns:
        ``None`` for each completion, so that this function adds no reward.

    Raises:
        ConfigurationError: There are no environments.
    """
    if environments is None:
        raise ConfigurationError(
            "The reward function hand_in received no environments: pass environment_factory= to GRPOTrainer."
        )
    for completion, environment in zip(completions, environments, strict=True):
        last = completion if isinstance(completion, str) else completion[-1]
        if isinstance(last, Mapping):
            if last.get("role") != "assistant" or last.get("tool_calls"):
                continue
            last = text_of(last.get("content"))
        if not environment._served.over:
            environment._step(last)
    return [None] * len(completions)


def rows(env: str, count: int, *, seed: int = 0, **options: Any) -> list[dict[str, Any]]:
    """Return rows for ``datasets.Dataset.from_list``, each with ``problem_id``, ``seed`` and an empty ``prompt``.

    TRL appends the text from ``reset`` to the prompt.

    Args:
        env: A registered id.
        count: Number of rows.
        seed: Different seeds give rows with different problems.
        **options: Options of ``make_env``.
    """
    made = make_env(env, **options)
    found = []
    for index in range(count):
        made.reset(seed=seed if index == 0 else None)
        number = int(made.unwrapped.np_random.integers(2**31))
        _, info = made.reset(seed=number)
        prompt = [{"role": "user", "content": ""}]
        found.append({"prompt": prompt, "problem_id": info["problem_id"], "seed": number})
    made.close()
    return found


def _method(schema: Mapping[str, Any]) -> Callable[..., str]:
    """Return a function with the signature, annotations and docstring of the tool's schema."""
    name: str = schema["name"]
    if not name.isidentifier() or name.startswith("_") or name in _RESERVED:
        raise ConfigurationError(
            f"The tool {name!r} cannot be a method for TRL, because its name is not a Python identifier, begins with "
            f"an underscore, or is reserved ({', '.join(_RESERVED)}): rename the tool."
        )
    parameters: Mapping[str, Any] = schema["parameters"].get("properties", {})
    required = schema["parameters"].get("required", ())
    arguments = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    lines = []
    for key in sorted(parameters, key=lambda key: key not in required):
        if not key.isidentifier():
            raise ConfigurationError(
                f"The argument {key!r} of the tool {name!r} has a name that is not valid in Python, which "
                "TRL needs: rename the argument."
            )
        hint: Any = _hint(parameters[key])
        default: Any = inspect.Parameter.empty
        if key not in required:
            hint, default = hint | None, None
        arguments.append(
            inspect.Parameter(key, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=hint)
        )
        lines.append(f"    {key}: {_line(parameters[key].get('description') or f'The {key}.')}")
    signature = inspect.Signature(arguments, return_annotation=str)

    def method(self: TrlEnvironment, *args: Any, **kwargs: Any) -> str:
        given = dict(signature.bind(self, *args, **kwargs).arguments)
        del given["self"]
        sent = {key: value for key, value in given.items() if value is not None or key in required}
        return self._step(self._dialect.format_call(name, sent))

    method.__name__, method.__qualname__ = name, f"TrlEnvironment.{name}"
    method.__doc__ = "\n".join(
        [_line(schema["description"]), "", *(["Args:", *lines, ""] if lines else []), "Returns:", "    The result."]
    )
    method.__annotations__ = {p.name: p.annotation for p in arguments[1:]} | {"return": str}
    method.__signature__ = signature  # type: ignore[attr-defined]  # a function takes any attribute; mypy knows only declared ones
    return method


def _hint(schema: Mapping[str, Any]) -> Any:
    if schema.get("enum"):
        return Literal[tuple(schema["enum"])]
    kind = schema.get("type")
    return _TYPES.get(kind, Any) if isinstance(kind, str) else Any


def _line(text: str) -> str:
    """Return the text as one line; ``Args:`` and similar words lose their colon, so that they start no section."""
    return re.sub(r"\b(Args|Returns|Raises):", r"\1", " ".join(text.split()))
