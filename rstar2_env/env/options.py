"""Converts and checks the options of an environment before it is created."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rstar2_env.core.options.declare import read_loosely, typed_options
from rstar2_env.env.named import EnvSpec, NamedEnv, find_env

_OF_MAKE = ("max_episode_steps", "disable_env_checker")
"""Options of ``gym.make`` itself, in addition to the environment's own options."""


def env_options(env: EnvSpec | NamedEnv, options: Mapping[str, Any] | None, *, prefix: str = "") -> dict[str, Any]:
    """Convert the options of an environment to the types that its class declares.

    Args:
        env: The environment, in any form that ``rstar2_env.env.named`` accepts.
        options: The user's options; text from the command line is converted according to the signature of the
            environment's class.
        prefix: Prefix of the option names in messages ("env_options.").

    Raises:
        ConfigurationError: The environment does not have such an option (the message suggests the closest name), or a
            value is not valid.
        UnknownEnvError: The environment does not exist.
    """
    given = dict(options or {})
    if not given:
        return {}
    found = env if isinstance(env, NamedEnv) else find_env(env)
    if found.creator is None:
        return {name: read_loosely(value) for name, value in given.items()}
    common = {name: read_loosely(given.pop(name)) for name in _OF_MAKE if found.env_id and name in given}
    return {**typed_options(f"environment {found.name!r}", found.creator, given, prefix=prefix), **common}
