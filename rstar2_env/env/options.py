"""The options of an environment, typed and checked before anything is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rstar2_env.core.options.declare import read_loosely, typed_options
from rstar2_env.env.named import EnvSpec, NamedEnv, find_env

_OF_MAKE = ("max_episode_steps", "disable_env_checker")
"""What ``gym.make`` takes beside the environment's own options."""


def env_options(env: EnvSpec | NamedEnv, options: Mapping[str, Any] | None, *, prefix: str = "") -> dict[str, Any]:
    """The options of an environment as its class wants them.

    Args:
        env: The environment, in any of the forms of ``rstar2_env.env.named``.
        options: What the user gave; text of the command line is typed by the signature of the environment's class.
        prefix: Goes before the names in messages ("env_options.").

    Raises:
        ConfigurationError: The environment has no such option (the message suggests the nearest), or a value does not
            fit.
        UnknownEnvError: There is no such environment.
    """
    given = dict(options or {})
    if not given:
        return {}
    found = env if isinstance(env, NamedEnv) else find_env(env)
    if found.creator is None:
        return {name: read_loosely(value) for name, value in given.items()}
    common = {name: read_loosely(given.pop(name)) for name in _OF_MAKE if found.env_id and name in given}
    return {**typed_options(f"environment {found.name!r}", found.creator, given, prefix=prefix), **common}
