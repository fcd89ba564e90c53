"""Wrappers by name, so that a configuration and a command line can put them around an environment."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import gymnasium as gym

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import call_with_options, typed_options
from rstar2_env.core.options.own_code import Shape
from rstar2_env.core.options.parts import Part, PartSpec, part_named, read_part
from rstar2_env.core.options.registry import Registry

Wrap: TypeAlias = Callable[..., "gym.Env[str, str]"]
"""Puts a wrapper around an environment: takes the environment first, then its options by name."""

WRAPPERS: Registry[Wrap] = Registry(
    "wrapper",
    "rstar2_env.wrappers",
    "rstar2_env.wrappers",
    shape=Shape(
        lambda value: inspect.isclass(value) and issubclass(value, gym.Wrapper),
        "a class derived from gymnasium.Wrapper",
    ),
)


def read_wrappers(wrappers: str | Sequence[PartSpec]) -> list[Part]:
    """Read wrappers as a configuration writes them, and check names and options; one text is one wrapper.

    Raises:
        UnknownNameError: There is no wrapper of one of the names.
        ConfigurationError: They are no list, one is in none of the forms of ``rstar2_env.core.options.parts``, or an
        option is
            unknown or of another type.
    """
    if isinstance(wrappers, str):
        wrappers = [wrappers]
    if not isinstance(wrappers, Sequence):
        raise ConfigurationError(f"wrappers must be a list, the innermost one first, not {wrappers!r}.")
    parts = [read_part(written, WRAPPERS.kind) for written in wrappers]
    found = []
    for part in parts:
        made_by = part.made_by or WRAPPERS.get(part.name)
        with part_named(WRAPPERS.kind, part):
            typed_options(f"wrapper {part.name!r}", partial(made_by, None), part.options)
        found.append(Part(part.name, part.options, made_by))
    return found


def wrap(env: gym.Env[str, str], wrappers: str | Sequence[PartSpec]) -> gym.Env[str, str]:
    """Put wrappers around an environment, the first one innermost.

    Args:
        env: A text environment.
        wrappers: Each as ``rstar2_env.core.options.parts`` has it ("fault_injection:rate=0.1,kinds=timeout+lost"), or a
        class
            or function that takes the environment.

    Raises:
        UnknownNameError: There is no wrapper of that name.
        ConfigurationError: An option does not fit, or the environment is none that the wrapper can act on.
    """
    for part in read_wrappers(wrappers):
        assert part.made_by is not None  # read_wrappers looked it up
        with part_named(WRAPPERS.kind, part):
            env = call_with_options(f"wrapper {part.name!r}", partial(part.made_by, env), part.options)
    return env


def recorded(wrappers: str | Sequence[PartSpec]) -> list[str]:
    """Wrappers as a file can keep them: each in the notation from which it is read again."""
    return [str(part) for part in read_wrappers(wrappers)]


def options_of_wrapper(wrapper: Wrap) -> dict[str, Any]:
    """A wrapper's options and their defaults; an option without one has ``inspect.Parameter.empty``."""
    parameters = list(inspect.signature(wrapper).parameters.values())[1:]
    return {one.name: one.default for one in parameters}
