"""Finds an environment by name: a Gymnasium id, an id with the code that registers it, or the user's own class.

Accepted forms: ``mine/Divisors-v0``; ``divisors:mine/Divisors-v0`` (Gymnasium's form, with the current folder on the
path) and ``./divisors.py:mine/Divisors-v0``; ``divisors:DivisorsEnv`` and ``./divisors.py:DivisorsEnv``; and
``./divisors.py`` if that file holds exactly one environment. Not covered: options and wrappers
(``rstar2_env.wrappers.make``).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, TypeAlias

import gymnasium as gym
from gymnasium.envs.registration import find_highest_version, get_env_id, load_env_creator, parse_env_id

from rstar2_env.core.errors import ConfigurationError, MissingExtraError, UnknownEnvError
from rstar2_env.core.options.user_code import Shape, UserCodeName, candidates, find_user_code, user_code_name
from rstar2_env.env.spaces import UnicodeText

EnvSpec: TypeAlias = "str | Callable[..., gym.Env[str, str]]"
"""An environment given by a name (see the module's docstring), or by the class or function that creates it."""

EXTRA_OF = {"rstar2/ReasoningGym-v0": "reasoning-gym"}
"""Ids that are registered only if an extra of the package is installed, with the name of that extra."""

_SHAPE = Shape(
    lambda value: inspect.isclass(value) and issubclass(value, gym.Env), "a class derived from gymnasium.Env"
)


@dataclass(frozen=True, slots=True)
class NamedEnv:
    """The environment that a name refers to.

    Attributes:
        name: The user's text, or the name of the class or function.
        env_id: The id in Gymnasium's registry, or "" if the environment is not registered.
        creator: The class or function that creates the environment, or ``None`` if the id can create only a vector
            environment.
    """

    name: str
    env_id: str
    creator: Callable[..., Any] | None


def find_env(env: EnvSpec) -> NamedEnv:
    """Find the environment that a name refers to.

    Raises:
        UnknownEnvError: No such id is registered; the message suggests the closest id.
        MissingExtraError: The environment needs an extra that is not installed.
        ConfigurationError: The user's code does not exist, fails on import, or does not define the environment.
    """
    if not isinstance(env, str):
        if not callable(env):
            raise ConfigurationError(
                "Expected an environment (a Gymnasium id, your own code such as ./file.py:Name, or a class or "
                f"function that creates an environment), got {env!r}."
            )
        return NamedEnv(getattr(env, "__qualname__", type(env).__qualname__), "", env)
    if env in gym.registry:
        return _registered(env, env)
    own = user_code_name(env)
    if own is None:
        return _registered(env, _known_id(env, env))
    module = own.load()
    if own.name in gym.registry or "/" in own.name:
        return _registered(env, _known_id(own.name, env))
    if not own.name and len(ids := _ids_of(module)) == 1:
        return _registered(env, ids[0])
    return NamedEnv(env, "", _own_class(own, module))


def check_text(env: gym.Env[Any, Any], name: str) -> None:
    """Reject an environment whose actions or observations are not texts.

    Raises:
        ConfigurationError: The action space or the observation space does not contain text.
    """
    spaces = {kind: getattr(env, f"{kind}_space", None) for kind in ("action", "observation")}
    for space in spaces.values():
        if space is None or isinstance(space, (UnicodeText, gym.spaces.Text)):
            continue
        if type(space).__module__.startswith("gymnasium.") or not space.contains("text"):
            raise ConfigurationError(
                f"{name} is not a text environment: its actions are {spaces['action']} and its observations "
                f"{spaces['observation']}. Expected an environment whose spaces are rstar2_env.env.spaces.UnicodeText "
                "or gymnasium.spaces.Text; `rstar2 list envs` lists the text environments of this package."
            )


def _registered(name: str, env_id: str) -> NamedEnv:
    entry_point = gym.spec(env_id).entry_point
    if entry_point is None or callable(entry_point):
        return NamedEnv(name, env_id, entry_point)
    try:
        return NamedEnv(name, env_id, load_env_creator(entry_point))
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError(
            f"{env_id} is registered as {entry_point}, which cannot be loaded: {type(error).__name__}: {error}"
        ) from error


def _known_id(env_id: str, written: str) -> str:
    """Return ``env_id``; if it has no version, add the highest registered version.

    Args:
        env_id: The id, with or without a version.
        written: The user's text, for error messages.

    Raises:
        UnknownEnvError: No such id is registered.
        MissingExtraError: The environment needs an extra that is not installed.
    """
    try:
        namespace, name, version = parse_env_id(env_id)
    except gym.error.Error:
        namespace, name, version = None, env_id, 0
    full = env_id if version is not None else next((one for one in EXTRA_OF if one.startswith(f"{env_id}-v")), env_id)
    if full in EXTRA_OF and full not in gym.registry:
        raise MissingExtraError(EXTRA_OF[full], f"The environment {full}")
    if version is None:
        env_id = get_env_id(namespace, name, find_highest_version(namespace, name))
    if env_id in gym.registry:
        return env_id
    theirs = [known for known, spec in gym.registry.items() if _home(spec).partition(".")[0] != "gymnasium"]
    raise UnknownEnvError("environment", written, theirs, listed_by="rstar2 list envs")


def _ids_of(module: ModuleType) -> list[str]:
    """Return the ids of the environments that a module defines."""
    return [env_id for env_id, spec in gym.registry.items() if _home(spec) == module.__name__]


def _home(spec: gym.envs.registration.EnvSpec) -> str:
    """Return the name of the module that defines an environment."""
    entry_point = spec.entry_point
    return (
        entry_point.partition(":")[0] if isinstance(entry_point, str) else str(getattr(entry_point, "__module__", ""))
    )


def _own_class(own: UserCodeName, module: ModuleType) -> Any:
    ids = _ids_of(module)
    if not own.name and ids:
        classes = sorted(candidates(module, _SHAPE))
        raise ConfigurationError(
            f"{own.written} defines several environments ({', '.join([*ids, *classes])}): name one of "
            f"them, for example {own.written}:{ids[0]}."
        )
    return find_user_code(own, "environment", _SHAPE, {})
