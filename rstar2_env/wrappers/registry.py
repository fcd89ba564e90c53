"""Wrappers by name, for configurations and command lines."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import gymnasium as gym

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import call_with_options, typed_options
from rstar2_env.core.options.parts import Part, PartSpec, part_named, read_part
from rstar2_env.core.options.registry import Registry
from rstar2_env.core.options.user_code import Shape

Wrap: TypeAlias = Callable[..., "gym.Env[str, str]"]
"""A wrapper class, or a function that returns a wrapped environment; its options are passed by name."""

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
    """Read wrappers from a configuration and check their names and options; a string is a single wrapper.

    Raises:
        UnknownNameError: No wrapper has one of the names.
        ConfigurationError: The value is not a list, a wrapper does not have one of the forms of
            ``rstar2_env.core.options.parts``, or an option is unknown or has the wrong type.
    """
    if isinstance(wrappers, str):
        wrappers = [wrappers]
    if not isinstance(wrappers, Sequence):
        raise ConfigurationError(f"`wrappers` must be a list with the innermost wrapper first, not {wrappers!r}.")
    parts = [read_part(written, WRAPPERS.kind) for written in wrappers]
    found = []
    for part in parts:
        made_by = part.made_by or WRAPPERS.get(part.name)
        with part_named(WRAPPERS.kind, part):
            typed_options(f"wrapper {part.name!r}", partial(made_by, None), part.options)
        found.append(Part(part.name, part.options, made_by))
    return found


def wrap(env: gym.Env[str, str], wrappers: str | Sequence[PartSpec]) -> gym.Env[str, str]:
    """Apply wrappers to an environment, innermost first.

    Args:
        env: A text environment.
        wrappers: Wrappers in the notation of ``rstar2_env.core.options.parts``
            ("fault_injection:rate=0.1,kinds=timeout+lost"), or classes or functions that take the environment.

    Raises:
        UnknownNameError: No wrapper has this name.
        ConfigurationError: An option is not valid, or the wrapper cannot act on the environment.
    """
    for part in read_wrappers(wrappers):
        assert part.made_by is not None  # read_wrappers sets it
        with part_named(WRAPPERS.kind, part):
            env = call_with_options(f"wrapper {part.name!r}", partial(part.made_by, env), part.options)
    return env


def recorded(wrappers: str | Sequence[PartSpec]) -> list[str]:
    """Return wrappers as strings that can be written to a file and that ``read_wrappers`` can read again."""
    return [str(part) for part in read_wrappers(wrappers)]


def options_of_wrapper(wrapper: Wrap) -> dict[str, Any]:
    """Return the default of each option of a wrapper; ``inspect.Parameter.empty`` for an option without a default."""
    parameters = list(inspect.signature(wrapper).parameters.values())[1:]
    return {one.name: one.default for one in parameters}
