"""``check_wrapper``: checks that a wrapper composes with every text environment and keeps the contract."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

import gymnasium as gym

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.testing.harness import TextEnv
from rstar2_env.testing.runner import run_checks
from rstar2_env.testing.stub_sandbox import StubSandbox
from rstar2_env.testing.wrapper_checks import WRAPPER_CHECKS, WrapperHarness

AROUND = ("rstar2/MathTool-v0", "rstar2/TicTacToe-v0", "rstar2/Countdown-v0")
"""A math environment with a tool, a game of several turns, a puzzle."""


def check_wrapper(
    wrapper: Callable[..., TextEnv],
    *,
    envs: Sequence[str | Callable[[], TextEnv]] = AROUND,
    seeds: Sequence[int] = (0,),
    skip: Collection[str] = (),
    **options: Any,
) -> list[str]:
    """Check a wrapper against the contract of docs/wrappers.md. Needs no pytest.

    Args:
        wrapper: A class, or a function that puts one wrapper or several around an environment.
        envs: Environments to wrap: registered ids, whose sandbox is replaced with a stub, or functions that make an
            environment.
        seeds: Seeds of the episodes that are played.
        skip: Names of checks to leave out; see ``rstar2_env.testing.WRAPPER_CHECKS``.
        **options: Options of the wrapper.

    Returns:
        The names of the checks that were made.

    Raises:
        ConformanceError: The wrapper breaks the contract; the message lists every clause that it breaks.
        UnknownNameError: ``skip`` contains a name that is not a check.
        ConfigurationError: The arguments do not fit together, or the wrapper refuses its options.
    """
    if not callable(wrapper) or isinstance(wrapper, gym.Env):
        raise ConfigurationError(
            f"check_wrapper takes a class or a function that wraps an environment, not {wrapper!r}."
        )
    if isinstance(envs, str) or not envs or not seeds:
        raise ConfigurationError(
            f"check_wrapper needs a list of at least one environment, and at least one seed, not {envs!r}, {seeds!r}."
        )
    name = getattr(wrapper, "__qualname__", repr(wrapper))
    makers = {_name(env): partial(_stubbed, env) if isinstance(env, str) else env for env in envs}
    harness = WrapperHarness(lambda env: wrapper(env, **options), makers, seeds)
    harness.wrapped(next(iter(makers.values()))())  # errors about its options are raised unchanged
    harness.close()
    return run_checks(f"The wrapper {name}", WRAPPER_CHECKS, harness, skip=skip, after=harness.close)


def _stubbed(env_id: str) -> TextEnv:
    """Make an environment with a stub in place of its sandbox, if it has one."""
    try:
        return gym.make(env_id, sandbox=StubSandbox("42 and more"), disable_env_checker=True)
    except (TypeError, ConfigurationError):  # it runs no programs
        return gym.make(env_id, disable_env_checker=True)


def _name(env: str | Callable[[], TextEnv]) -> str:
    return env if isinstance(env, str) else str(getattr(env, "__qualname__", repr(env)))
