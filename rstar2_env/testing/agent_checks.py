"""Checks of the rules for agents, one function for each rule; ``check_agent`` runs them all.

Covered: the rules for every agent that acts in text environments. Not covered: how well an agent plays.
"""

from __future__ import annotations

import copy
import importlib
import inspect
import pickle
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import gymnasium as gym

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.env.agent import AnyAgent, start_agent
from rstar2_env.env.reference import reference_of
from rstar2_env.problems import Problem
from rstar2_env.testing.harness import MadeEnvs, TextEnv, canonical, require
from rstar2_env.testing.hostile import HOSTILE_TURNS
from rstar2_env.testing.randomness import require_own_randomness
from rstar2_env.testing.runner import by_name, run_checks
from rstar2_env.testing.stub_sandbox import StubSandbox
from rstar2_env.testing.toy_env import PlainEnv

AgentTranscript = list[tuple[str, str]]
"""The observations that an agent received and the texts that it returned, turn by turn."""

_MOST_TURNS = 200
_SHOWN = 80
_COPY = "copy info before changing it"


@dataclass(slots=True)
class AgentHarness(MadeEnvs):
    """One agent under test.

    Attributes:
        make: Function that makes a new agent.
        make_env: Function that makes an environment that the agent can play.
        problem: The problem to play; ``None`` lets the environment choose.
        seeds: Seeds of the episodes that are played, at least two.
    """

    make: Callable[[], AnyAgent]
    make_env: Callable[[], TextEnv]
    problem: Problem | None
    seeds: Sequence[int]

    def env(self) -> TextEnv:
        """Make a new environment; the harness's ``close`` closes it."""
        return self.keep(self.make_env())

    def start(self, agent: AnyAgent, env: TextEnv, seed: int) -> tuple[str, dict[str, Any]]:
        """Begin an episode: reset the environment and the agent.

        Args:
            agent: The agent under test.
            env: The environment to play.
            seed: Seed of the environment and of the agent.

        Returns:
            The return value of the environment's ``reset``.
        """
        options = None if self.problem is None else {"problem": self.problem}
        text, info = env.reset(seed=seed, options=options)
        problem = self.problem or getattr(env.unwrapped, "problem", None)
        start_agent(agent, text, info, seed=seed, problem=problem, reference=reference_of(env))
        return text, info

    def play(self, agent: AnyAgent, env: TextEnv, seed: int, most: int = _MOST_TURNS) -> AgentTranscript:
        """Play one episode, or its first ``most`` turns.

        Args:
            agent: The agent under test.
            env: The environment to play.
            seed: Seed of the environment and of the agent.
            most: Maximum number of turns.
        """
        return list(islice(self.turns(agent, env, seed), most))

    def turns(self, agent: AnyAgent, env: TextEnv, seed: int) -> Iterator[tuple[str, str]]:
        """Play one episode; yield each observation with the agent's turn, before the environment gets that turn."""
        text, info = self.start(agent, env, seed)
        over = False
        while not over:
            turn = agent.act(text, info)
            yield text, turn
            text, _, terminated, truncated, info = env.step(turn)
            over = terminated or truncated


def protocol(harness: AgentHarness) -> None:
    """Check the arguments of the agent's ``reset`` and ``act``, its class's docstring, and ``needs_problem``."""
    agent = harness.make()
    problem = getattr(agent, "needs_problem", False)
    require(isinstance(problem, bool), f"needs_problem must be True or absent, not {problem!r}")
    reference = getattr(agent, "needs_reference", False)
    require(problem or not reference, "needs_reference has no effect without needs_problem = True")
    names = ["seed", *(["problem"] if problem else []), *(["reference"] if reference else [])]
    for method, named in (("reset", names), ("act", [])):
        function = getattr(agent, method, None)
        written = f"{method}(observation, info{', *, ' if named else ''}{', '.join(named)})"
        require(callable(function), f"it has no method {written}")
        assert callable(function)
        try:
            inspect.signature(function).bind("text", {}, **dict.fromkeys(named))
        except TypeError as error:
            raise AssertionError(f"the agent must accept the call {written}: {error}") from error
    line = (inspect.getdoc(type(agent)) or "").partition("\n")[0]
    require(
        len(line) > 20,
        "the first line of the docstring of its class must describe the agent, for `rstar2 list agents`",
    )


def turns(harness: AgentHarness) -> None:
    """Check that every turn is a text that the environment accepts and that can be written to a file."""
    env, agent = harness.env(), harness.make()
    for seed in harness.seeds:
        turn: Any
        for number, (_, turn) in enumerate(islice(harness.turns(agent, env, seed), _MOST_TURNS), 1):
            require(
                isinstance(turn, str),
                f"act returned {type(turn).__name__} at turn {number}; return the turn as a str, which may be empty",
            )
            require(turn in env.action_space, f"turn {number} is not in the action space: {turn[:_SHOWN]!r}")
            whole = not any("\ud800" <= letter <= "\udfff" for letter in turn)
            require(whole, f"turn {number} has a lone surrogate, which no tokenizer accepts: {turn[:_SHOWN]!r}")


def determinism(harness: AgentHarness) -> None:
    """Check that two new instances of the agent play the same turns if they receive the same seed."""
    env = harness.env()
    for seed in harness.seeds:
        one, other = (harness.play(harness.make(), env, seed) for _ in range(2))
        require(
            one == other,
            f"two agents play the seed {seed} differently; seed all random draws in reset(seed=). {_said(one, other)}",
        )


def forgetting(harness: AgentHarness) -> None:
    """Check that ``reset`` clears the previous episode, even if it was abandoned midway or before its first turn."""
    env, agent = harness.env(), harness.make()
    first, second = harness.seeds[0], harness.seeds[1]
    expected = harness.play(agent, env, first)
    advice = "set all state again in reset"
    again = harness.play(agent, env, first)
    require(again == expected, f"an episode differs if one agent plays it twice; {advice}. {_said(expected, again)}")
    harness.play(agent, env, second, most=1)
    harness.start(agent, env, second)
    again = harness.play(agent, env, first)
    require(
        again == expected, f"an episode differs if it follows an abandoned episode; {advice}. {_said(expected, again)}"
    )


def other_environments(harness: AgentHarness) -> None:
    """Check that the agent plays an environment whose ``info`` is empty, as in other packages."""
    agent = harness.make()
    # An agent that knows the answer may have nothing to say after it has given the answer.
    env = PlainEnv(turns=1 if getattr(agent, "needs_problem", False) else 3)
    for seed in harness.seeds:
        try:
            harness.play(agent, env, seed)
        except Exception as error:
            raise AssertionError(
                f"in an environment whose info is empty, the agent raises {type(error).__name__}: {error}. Any key, "
                "such as 'system' or 'tools', may be missing: use info.get"
            ) from error


def hostile_observations(harness: AgentHarness) -> None:
    """Check that no observation, such as the output of a tool, makes the agent raise."""
    env, agent = harness.env(), harness.make()
    for what, text in HOSTILE_TURNS.items():
        _, info = harness.start(agent, env, harness.seeds[0])
        try:
            turn: Any = agent.act(text, info)
        except Exception as error:
            raise AssertionError(
                f"given {what} as the observation, the agent raises {type(error).__name__}: {str(error)[:300]}"
            ) from error
        require(isinstance(turn, str), f"given {what} as the observation, act returned {type(turn).__name__}, not str")


def untouched_info(harness: AgentHarness) -> None:
    """Check that the agent does not change the ``info`` that it receives."""
    env, agent = harness.env(), harness.make()
    options = None if harness.problem is None else {"problem": harness.problem}
    shown = canonical(env.reset(seed=harness.seeds[0], options=options)[1])
    text, info = harness.start(agent, env, harness.seeds[0])
    require(canonical(info) == shown, f"its reset changed info; {_COPY}")
    for _ in range(_MOST_TURNS):
        turn = agent.act(text, info)
        require(canonical(info) == shown, f"its act changed info; {_COPY}")
        text, _, terminated, truncated, info = env.step(turn)
        shown = canonical(info)
        if terminated or truncated:
            break


def global_random_state(harness: AgentHarness) -> None:
    """Check that the agent neither uses nor changes the states of ``random`` and ``numpy.random``."""
    env = harness.env()
    advice = "draw from numpy.random.default_rng(seed), made in reset"
    require_own_randomness(lambda: harness.play(harness.make(), env, harness.seeds[0]), advice)


def pickling(harness: AgentHarness) -> None:
    """Check that an agent can be pickled in the middle of an episode; if not, that the function that makes it can."""
    env = harness.env()
    seed = harness.seeds[0]
    try:
        agent = harness.make()
        text, info = harness.start(agent, env, seed)
        twin: AnyAgent = pickle.loads(pickle.dumps(agent))
        require(
            twin.act(text, info) == agent.act(text, info),
            "its copy, pickled in the middle of an episode, continues differently; pickle its whole state",
        )
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        try:
            make: Callable[[], AnyAgent] = pickle.loads(pickle.dumps(harness.make))
        except (pickle.PicklingError, TypeError, AttributeError):
            raise AssertionError(
                f"neither the agent nor the function that makes it can be pickled ({error}); either remove "
                "lambdas, locks and open files from the agent, or make it with a class or function of a module"
            ) from error
        one, other = harness.play(make(), env, seed), harness.play(harness.make(), env, seed)
        require(one == other, f"the pickled function makes a different agent. {_said(one, other)}")


AGENT_CHECKS = by_name(
    protocol,
    turns,
    determinism,
    forgetting,
    other_environments,
    hostile_observations,
    untouched_info,
    global_random_state,
    pickling,
)
"""Checks by name; the first line of a check's docstring describes the check."""


def _said(one: AgentTranscript, other: AgentTranscript) -> str:
    """Describe the first difference between two episodes."""
    for number, (left, right) in enumerate(zip(one, other, strict=False), 1):
        if left != right:
            return f"At turn {number}: {left[1][:_SHOWN]!r} and {right[1][:_SHOWN]!r}"
    return f"One episode has {len(one)} turns, and the other has {len(other)}"


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
            is copied. If ``agent`` is an object, the checks may miss state that agents share.
        env: A registered id, or a function that makes the environment to play; by default ``rstar2/MathTool-v0`` with
            a stub instead of the sandbox.
        problem: The problem to play; by default a multiplication, or, if ``env`` is given, the problem that ``env``
            chooses.
        seeds: Seeds of the episodes that are played; at least two.
        skip: Names of checks to leave out; see ``rstar2_env.testing.AGENT_CHECKS``.
        **options: Options of the agent, when it is given as a name, a class or a function.

    Returns:
        The names of the checks that were made.

    Raises:
        ConformanceError: The agent breaks the contract; the message lists every clause that it breaks.
        UnknownNameError: ``skip`` contains a name that is not a check, or there is no agent with this name.
        ConfigurationError: There are fewer than two seeds, options are given although ``agent`` is an object, or
            ``agent`` has a wrong type.
    """
    if len(set(seeds)) < 2:
        raise ConfigurationError(
            f"check_agent compares episodes of different seeds, so it needs at least two different seeds, not {seeds}."
        )
    if isinstance(agent, str):
        # Imported only here, by name, because the core packages must not import agents.
        what, make = agent, partial(importlib.import_module("rstar2_env.agents").make, agent, **options)
    elif callable(agent):
        what, make = getattr(agent, "__qualname__", repr(agent)), partial(agent, **options)
    elif hasattr(agent, "act"):
        if options:
            raise ConfigurationError(
                f"The options {', '.join(options)} apply only to an agent that is given by name or class, "
                "not to an agent that is already an object: omit them."
            )
        what, make = type(agent).__qualname__, partial(copy.deepcopy, copy.deepcopy(agent))
    else:
        raise ConfigurationError(
            f"check_agent takes the name of an agent, an agent, or a function that creates an agent, not {agent!r}."
        )
    make()  # an error in the constructor is raised unchanged
    if env is None:
        problem = problem or _PROBLEM
    make_env = partial(gym.make, env, disable_env_checker=True) if isinstance(env, str) else env or _math
    harness = AgentHarness(make, make_env, problem, tuple(dict.fromkeys(seeds)))
    return run_checks(f"The agent {what}", AGENT_CHECKS, harness, skip=skip, after=harness.close)


def _math() -> TextEnv:
    return gym.make("rstar2/MathTool-v0", sandbox=StubSandbox("42\n"), disable_env_checker=True)
