"""The clauses of the agent contract, one function each; ``check_agent`` runs them all.

Covered: the rules for every agent that acts in text environments. Not covered: how well an agent plays.
"""

from __future__ import annotations

import inspect
import pickle
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rstar2_env.env.agent import AnyAgent, start_agent
from rstar2_env.env.reference import reference_of
from rstar2_env.problems import Problem
from rstar2_env.testing.harness import TextEnv, canonical, require
from rstar2_env.testing.hostile import HOSTILE_TURNS
from rstar2_env.testing.runner import by_name
from rstar2_env.testing.toy_env import PlainEnv

AgentTranscript = list[tuple[str, str]]
"""The observations that an agent received and the texts that it returned, turn by turn."""

_MOST_TURNS = 200
_SHOWN = 80
_COPY = "copy info before changing it"


@dataclass(slots=True)
class AgentHarness:
    """One agent under test.

    Attributes:
        make: Makes a new agent.
        make_env: Makes an environment that it can play.
        problem: The problem to play; ``None`` lets the environment choose.
        seeds: Seeds of the episodes that are played, at least two.
    """

    make: Callable[[], AnyAgent]
    make_env: Callable[[], TextEnv]
    problem: Problem | None
    seeds: Sequence[int]
    _made: list[TextEnv] = field(default_factory=list)

    def env(self) -> TextEnv:
        """A new environment, which ``close`` closes."""
        self._made.append(self.make_env())
        return self._made[-1]

    def close(self) -> None:
        """Close every environment that was made."""
        while self._made:
            self._made.pop().close()

    def start(self, agent: AnyAgent, env: TextEnv, seed: int) -> tuple[str, dict[str, Any]]:
        """Begin an episode of the environment and of the agent.

        Args:
            agent: The agent.
            env: The environment.
            seed: Seed of both.

        Returns:
            The return value of the environment's ``reset``.
        """
        options = None if self.problem is None else {"problem": self.problem}
        text, info = env.reset(seed=seed, options=options)
        problem = self.problem or getattr(env.unwrapped, "problem", None)
        start_agent(agent, text, info, seed=seed, problem=problem, reference=reference_of(env))
        return text, info

    def play(self, agent: AnyAgent, env: TextEnv, seed: int, most: int = _MOST_TURNS) -> AgentTranscript:
        """Play one episode, or its first turns.

        Args:
            agent: The agent.
            env: The environment.
            seed: Seed of both.
            most: Largest number of turns.
        """
        text, info = self.start(agent, env, seed)
        trace: AgentTranscript = []
        for _ in range(most):
            turn = agent.act(text, info)
            trace.append((text, turn))
            text, _, terminated, truncated, info = env.step(turn)
            if terminated or truncated:
                break
        return trace


def protocol(harness: AgentHarness) -> None:
    """It has ``reset`` and ``act`` with the arguments of players, a docstring, and valid declarations of needs."""
    agent = harness.make()
    told = getattr(agent, "needs_problem", False)
    require(isinstance(told, bool), f"needs_problem must be True, or be left out, not {told!r}")
    reference = getattr(agent, "needs_reference", False)
    require(told or not reference, "needs_reference goes with needs_problem = True; without it no reference is passed")
    names = ["seed", *(["problem"] if told else []), *(["reference"] if reference else [])]
    for method, named in (("reset", names), ("act", [])):
        function = getattr(agent, method, None)
        written = f"{method}(observation, info{', *, ' if named else ''}{', '.join(named)})"
        require(callable(function), f"it has no method {written}")
        assert callable(function)
        try:
            inspect.signature(function).bind("text", {}, **dict.fromkeys(named))
        except TypeError as error:
            raise AssertionError(
                f"{written} is how it is called, and its {method} does not take that: {error}"
            ) from error
    line = (inspect.getdoc(type(agent)) or "").partition("\n")[0]
    require(
        len(line) > 20, "its class has no docstring whose first line says what it does, as `rstar2 agents` shows it"
    )


def turns(harness: AgentHarness) -> None:
    """Every turn is a text that the environment accepts and that can be written to a file."""
    env, agent = harness.env(), harness.make()
    for seed in harness.seeds:
        text, info = harness.start(agent, env, seed)
        for number in range(1, _MOST_TURNS + 1):
            turn: Any = agent.act(text, info)
            require(
                isinstance(turn, str),
                f"act returned {type(turn).__name__} at turn {number}; return the turn as a str, '' to say nothing",
            )
            require(turn in env.action_space, f"turn {number} is not in the action space: {turn[:_SHOWN]!r}")
            whole = not any("\ud800" <= letter <= "\udfff" for letter in turn)
            require(whole, f"turn {number} has a lone surrogate, which no tokenizer accepts: {turn[:_SHOWN]!r}")
            text, _, terminated, truncated, info = env.step(turn)
            if terminated or truncated:
                break


def determinism(harness: AgentHarness) -> None:
    """The same seed gives the same turns, in this agent and in another."""
    env = harness.env()
    for seed in harness.seeds:
        one, other = (harness.play(harness.make(), env, seed) for _ in range(2))
        require(
            one == other,
            f"two agents play seed {seed} differently; seed all random draws in reset(seed=). {_said(one, other)}",
        )


def forgetting(harness: AgentHarness) -> None:
    """``reset`` clears the previous episode, even one that was abandoned midway or before its first turn."""
    env, agent = harness.env(), harness.make()
    first, second = harness.seeds[0], harness.seeds[1]
    expected = harness.play(agent, env, first)
    advice = "set all state again in reset"
    again = harness.play(agent, env, first)
    require(again == expected, f"played twice by one agent, an episode differs; {advice}. {_said(expected, again)}")
    harness.play(agent, env, second, most=1)
    harness.start(agent, env, second)
    again = harness.play(agent, env, first)
    require(again == expected, f"after an abandoned episode, an episode differs; {advice}. {_said(expected, again)}")


def other_environments(harness: AgentHarness) -> None:
    """It plays an environment of another package, whose ``info`` is empty."""
    agent = harness.make()
    # An agent that has the answer may return no further text after it.
    env = PlainEnv(turns=1 if getattr(agent, "needs_problem", False) else 3)
    for seed in harness.seeds:
        try:
            harness.play(agent, env, seed)
        except Exception as error:
            raise AssertionError(
                f"on an environment whose info is empty: {type(error).__name__}: {error}. 'system', 'tools' and all "
                "else may be missing: use info.get"
            ) from error


def hostile_observations(harness: AgentHarness) -> None:
    """No observation, such as the output of a tool, makes it raise."""
    env, agent = harness.env(), harness.make()
    for what, text in HOSTILE_TURNS.items():
        _, info = harness.start(agent, env, harness.seeds[0])
        try:
            turn: Any = agent.act(text, info)
        except Exception as error:
            raise AssertionError(f"shown {what}: {type(error).__name__}: {str(error)[:300]}") from error
        require(isinstance(turn, str), f"shown {what}, act returned {type(turn).__name__}")


def untouched_info(harness: AgentHarness) -> None:
    """It does not change the ``info`` that it receives."""
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
    """The states of ``random`` and ``numpy.random`` are neither used nor changed."""
    env, traces = harness.env(), []
    kept = random.getstate(), np.random.get_state()
    try:
        for seed_of_globals in (1, 2):
            random.seed(seed_of_globals)
            np.random.seed(seed_of_globals)
            before = random.getstate(), pickle.dumps(np.random.get_state())
            traces.append(harness.play(harness.make(), env, harness.seeds[0]))
            after = random.getstate(), pickle.dumps(np.random.get_state())
            advice = "draw from numpy.random.default_rng(seed), made in reset"
            require(before[0] == after[0], f"it changes the global state of random; {advice}")
            require(before[1] == after[1], f"it changes the global state of numpy.random; {advice}")
    finally:
        random.setstate(kept[0])
        np.random.set_state(kept[1])
    require(traces[0] == traces[1], "its turns depend on the global random states; draw from a generator of its own")


def pickling(harness: AgentHarness) -> None:
    """It can move to another process: it, or the function that makes it, can be pickled, also midway in an episode."""
    env = harness.env()
    seed = harness.seeds[0]
    try:
        agent = harness.make()
        text, info = harness.start(agent, env, seed)
        twin: AnyAgent = pickle.loads(pickle.dumps(agent))
        require(
            twin.act(text, info) == agent.act(text, info),
            "pickled in the middle of an episode, it continues differently; include its whole state in the pickle",
        )
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        try:
            make: Callable[[], AnyAgent] = pickle.loads(pickle.dumps(harness.make))
        except (pickle.PicklingError, TypeError, AttributeError):
            raise AssertionError(
                f"neither it nor the function that makes it can be pickled ({error}); hold no lambda, lock or open "
                "file, or be made by a class or function of a module"
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
"""Every check by its name; the first line of each docstring is the clause."""


def _said(one: AgentTranscript, other: AgentTranscript) -> str:
    """Describe the first difference between two episodes."""
    for number, (left, right) in enumerate(zip(one, other, strict=False), 1):
        if left != right:
            return f"At turn {number}: {left[1][:_SHOWN]!r} and {right[1][:_SHOWN]!r}"
    return f"One has {len(one)} turns and the other {len(other)}"
