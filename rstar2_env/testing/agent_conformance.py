"""``check_agent``: checks that an agent keeps the contract that players, evaluations and rollouts rely on."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

import gymnasium as gym

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.env.agent import AnyAgent
from rstar2_env.problems import Problem
from rstar2_env.testing.agent_checks import AGENT_CHECKS, AgentHarness
from rstar2_env.testing.harness import TextEnv
from rstar2_env.testing.runner import run_checks
from rstar2_env.testing.stub_sandbox import StubSandbox

_PROBLEM = Problem("sum", "6 times 7?", "42", meta={"expression": "6*7", "calculations": ["6*7=42"]})


def check_agent(
    agent: str | AnyAgent | Callable[..., AnyAgent],
    /,
    *,
    env: str | Callable[[], TextEnv] | None = None,
    problem: Problem | None = None,
    seeds: Sequence[int] = (0, 1, 2),
    skip: Collection[str] = (),
    **options: Any,
) -> list[str]:
    """Check an agent against the contract of docs/agents.md. Needs no pytest.

    Args:
        agent: A name, as ``rstar2 eval --agent`` takes it; a class or function that makes an agent; or an agent, which
            is copied. Only a name or a function can prove that agents share no state.
        env: A registered id, or a function that makes the environment that it plays; ``rstar2/MathTool-v0`` with a
            stub in place of the sandbox by default.
        problem: The problem to play. By default a sum in the default environment, and the choice of ``env`` in another.
        seeds: Seeds of the episodes that are played; at least two.
        skip: Names of checks to leave out; see ``rstar2_env.testing.AGENT_CHECKS``.
        **options: Options of the agent, when it is given as a name, a class or a function.

    Returns:
        The names of the checks that were made.

    Raises:
        ConformanceError: The agent breaks the contract; the message lists every clause that it breaks.
        UnknownNameError: ``skip`` contains a name that is not a check, or there is no agent of that name.
        ConfigurationError: The arguments do not fit together.
    """
    if len(set(seeds)) < 2:
        raise ConfigurationError(
            f"check_agent needs at least two seeds, to tell one episode from another, not {seeds}."
        )
    if isinstance(agent, str):
        # By name, not by import: the core packages import no agent.
        what, make = agent, partial(importlib.import_module("rstar2_env.agents").make, agent, **options)
    elif callable(agent):
        what, make = getattr(agent, "__qualname__", repr(agent)), partial(agent, **options)
    elif hasattr(agent, "act"):
        if options:
            raise ConfigurationError(f"{', '.join(options)}: options go with a name or a class, not with an agent.")
        what, make = type(agent).__qualname__, partial(copy.deepcopy, copy.deepcopy(agent))
    else:
        raise ConfigurationError(f"check_agent takes a name, an agent, or a function that makes one, not {agent!r}.")
    make()  # an error in the constructor is raised unchanged
    if env is None:
        problem = problem or _PROBLEM
    make_env = partial(gym.make, env, disable_env_checker=True) if isinstance(env, str) else env or _math
    harness = AgentHarness(make, make_env, problem, tuple(dict.fromkeys(seeds)))
    return run_checks(f"The agent {what}", AGENT_CHECKS, harness, skip=skip, after=harness.close)


def _math() -> TextEnv:
    return gym.make("rstar2/MathTool-v0", sandbox=StubSandbox("42\n"), disable_env_checker=True)
