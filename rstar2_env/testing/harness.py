"""The harness of ``check_text_env``: makes instances, plays typical turns, and returns comparable results."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym

from rstar2_env.core.errors import ConfigurationError, Rstar2Error
from rstar2_env.env.turn_result import StepReturn
from rstar2_env.env.turn_result import TextEnv as TextEnv

MAX_STEPS = 1000
"""Number of turns after which an episode must have ended; if not, the environment has no budget."""


class ConformanceError(Rstar2Error, AssertionError):
    """A checked part breaks its contract; the message lists every clause that it breaks."""


def require(condition: object, message: str) -> None:
    """Raise ``AssertionError`` with ``message`` unless ``condition`` holds; unlike ``assert``, also under ``-O``."""
    if not condition:
        raise AssertionError(message)


@dataclass(slots=True)
class MadeEnvs:
    """Keeps the environments that a check makes, so that all of them can be closed."""

    _made: list[TextEnv] = field(default_factory=list, init=False)

    def keep(self, env: TextEnv) -> TextEnv:
        """Register an environment, so that ``close`` closes it too, and return it."""
        self._made.append(env)
        return env

    def close(self) -> None:
        """Close every registered environment, and ignore exceptions of ``close``."""
        while self._made:
            with suppress(Exception):
                self._made.pop().close()


@dataclass(slots=True)
class Harness(MadeEnvs):
    """One environment under test.

    Attributes:
        make: Function that makes a new instance.
        seeds: Seeds of the episodes that are played.
        actions: Turns to play in addition to the standard turns; ``scripts`` adds an episode for each.
    """

    make: Callable[[], TextEnv]
    seeds: Sequence[int]
    actions: Sequence[str]

    def env(self) -> TextEnv:
        """Make a new instance; the harness's ``close`` closes it."""
        return self.keep(self.make())

    def scripts(self, env: TextEnv) -> list[list[str]]:
        """Return a list of turns for each of several episodes, which together try every tool and all ``actions``."""
        _, info = env.reset(seed=self.seeds[0])
        calls = [typical_call(env, tool) for tool in info.get("tools", ())]
        unknown = write_call(env, "no_such_tool", {})
        scripts = [["I do not know."], [unknown, "I do not know."]]
        scripts += [[call, call, "I do not know."] for call in calls]
        if calls:
            scripts.append(["\n".join([*calls, unknown]), "I do not know."])
        return scripts + [[action, "I do not know."] for action in self.actions]

    def play(self, env: TextEnv, seed: int, turns: Sequence[str]) -> list[Any]:
        """Play one episode until it ends; return every result of ``reset`` and ``step`` as comparable data.

        Args:
            env: The environment under test.
            seed: Seed of ``reset``.
            turns: The actions to play, in order.
        """
        return [comparable(env.reset(seed=seed)), *map(comparable, steps(env, turns))]


def steps(env: TextEnv, turns: Iterable[str]) -> Iterator[StepReturn]:
    """Play turns until the episode ends, and yield the result of each ``step``."""
    for turn in turns:
        returned: Any = env.step(turn)
        yield returned
        if returned[2] or returned[3]:
            return


def comparable(returned: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a result of ``reset`` or ``step`` with its ``info`` as JSON text, for comparisons."""
    return *returned[:-1], canonical(returned[-1])


def harness_for(
    env: str | TextEnv | Callable[[], TextEnv], seeds: Sequence[int], actions: Sequence[str], options: Mapping[str, Any]
) -> tuple[str, Harness]:
    """Return the name of the environment under test, and a harness for it.

    Args:
        env: An id, an environment, or a function that makes one.
        seeds: Seeds of the episodes that are played; at least one.
        actions: Turns to play in addition to the standard turns; ``Harness.scripts`` adds an episode for each.
        options: Options of ``gym.make``, when ``env`` is an id.

    Raises:
        ConfigurationError: Options were given and ``env`` is not an id, or there are no seeds.
    """
    if not seeds:
        raise ConfigurationError("check_text_env needs at least one seed.")
    if isinstance(env, str):
        return env, Harness(lambda: gym.make(env, **options), seeds, actions)
    if options:
        raise ConfigurationError(
            f"The options {', '.join(options)} apply only to an environment that is given by id; pass a function "
            "that creates the environment with these options."
        )
    if isinstance(env, gym.Env):
        name = str(env)
        spec = env.spec
        if spec is not None:
            return name, Harness(lambda: gym.make(spec), seeds, actions)
        pristine = copy.deepcopy(env)
        return name, Harness(lambda: copy.deepcopy(pristine), seeds, actions)
    if not callable(env):
        raise ConfigurationError(
            f"check_text_env takes an id, an environment, or a function that creates an environment, not {env!r}."
        )
    return getattr(env, "__qualname__", repr(env)), Harness(env, seeds, actions)


def canonical(info: Mapping[str, Any]) -> str:
    """Return ``info`` as JSON text; equal contents give equal texts."""
    return json.dumps(info, sort_keys=True, allow_nan=False, ensure_ascii=False)


def write_call(env: TextEnv, name: str, arguments: Mapping[str, Any]) -> str:
    """Write a call in the environment's dialect, or in the ``rstar2`` dialect if it has none.

    Args:
        env: The environment that will receive the call.
        name: Name of the tool.
        arguments: Arguments of the tool.
    """
    dialect = getattr(env.unwrapped, "dialect", None)
    if dialect is not None and hasattr(dialect, "format_call"):
        # A dialect of code fences cannot write a call of a tool that does not exist.
        with suppress(LookupError, ValueError, TypeError):
            return str(dialect.format_call(name, arguments))
    return f"<tool_call>{json.dumps({'name': name, 'arguments': dict(arguments)})}</tool_call>"


def typical_call(env: TextEnv, tool: Mapping[str, Any]) -> str:
    """Write a call of a tool with arguments that fit its schema."""
    function = tool["function"]
    return write_call(env, function["name"], _fitting(function["parameters"]) or {})


def _fitting(schema: Mapping[str, Any]) -> Any:
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type", "string")
    match kind if isinstance(kind, str) else kind[0]:
        case "object":
            required = schema.get("required", ())
            return {name: _fitting(schema.get("properties", {}).get(name, {})) for name in required}
        case "array":
            return []
        case "integer" | "number":
            return 1
        case "boolean":
            return True
        case "null":
            return None
        case _:
            return "1"
