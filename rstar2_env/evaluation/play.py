"""Plays one episode: an agent and an environment, turn by turn, through ``reset`` and ``step`` alone.

Covered: what an agent is, the loop, its record, and how to write a call of a tool in a dialect. Not covered: many
episodes at once (``rstar2_env.evaluation.run``), policies that are trained (``rstar2_env.rollout``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias, cast, runtime_checkable

import gymnasium as gym

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.dialects import Dialect
from rstar2_env.env.reference import Reference, reference_of
from rstar2_env.problems import Problem


@runtime_checkable
class Agent(Protocol):
    """Text in, text out: turns what an environment shows into the next action.

    One agent plays one episode at a time; whoever plays many at once makes one agent for each. An agent reads what
    ``reset`` and ``step`` return, and nothing else of the environment.
    """

    def reset(self, observation: str, info: Mapping[str, Any], *, seed: int) -> None:
        """Start an episode, with what ``env.reset`` returned; forget the one before.

        Args:
            observation: The user's first message.
            info: Among others ``system`` (the system message) and ``tools`` (the schemas).
            seed: For an agent that draws anything; the same seed must give the same turns.
        """
        ...

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """The next turn, whole.

        Args:
            observation: What the environment showed last; at the first turn that of ``reset`` again.
            info: What came with it.
        """
        ...


@runtime_checkable
class InformedAgent(Protocol):
    """An agent that is told the problem, gold answer and all: a reference player, never a way to solve anything.

    It says so with ``needs_problem = True``. Whoever plays the episode hands the problem over; no agent takes it from
    the environment. One that has ``needs_reference = True`` too is also told, as ``reference=``, the environment's own
    reference player (``rstar2_env.env.reference``), or ``None``; where there is one, ``problem`` may be ``None``.
    """

    needs_problem: Literal[True]

    def reset(self, observation: str, info: Mapping[str, Any], *, seed: int, problem: Problem) -> None:
        """Start an episode of that problem."""
        ...

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """The next turn, whole."""
        ...


AnyAgent: TypeAlias = Agent | InformedAgent


class StopPlayingError(Exception):
    """Raised between two turns of an episode that was told to stop; nobody but the caller of the loop sees it."""


def play_episode(
    env: gym.Env[str, str],
    agent: AnyAgent,
    *,
    seed: int = 0,
    problem: Problem | None = None,
    stopped: Callable[[], bool] | None = None,
) -> Episode:
    """Play one episode to its end.

    Args:
        env: Any text environment.
        agent: Plays it.
        seed: Of the environment's ``reset`` and of the agent.
        problem: The problem to play, handed to ``reset`` and to an agent that needs it; ``None`` lets the environment
            choose.
        stopped: Asked before every turn; once it says yes the episode is given up.

    Raises:
        ConfigurationError: The agent needs the problem, and none was given.
        StopPlayingError: ``stopped`` said yes.
    """
    observation, info = env.reset(seed=seed, options=None if problem is None else {"problem": problem})
    episode = Episode(seed=seed).begin(observation, info)
    _start(agent, observation, info, seed, problem, reference_of(env))
    over = False
    while not over:
        if stopped is not None and stopped():
            raise StopPlayingError
        turn = agent.act(observation, info)
        returned = env.step(turn)
        over = episode.step(turn, returned)
        observation, info = returned[0], returned[4]
    return episode


def python_call(dialect: Dialect, tools: Sequence[Mapping[str, Any]], code: str) -> str:
    """Write a call that runs ``code`` in the first tool that takes code.

    Args:
        dialect: Writes the call.
        tools: Schemas, as ``info["tools"]`` of ``reset`` has them.
        code: The program.

    Raises:
        ConfigurationError: No tool has an argument ``code``.
    """
    for tool in tools:
        function = tool["function"]
        names = function["parameters"].get("properties", {})
        if "code" in names:
            arguments = {"code": code, "input": ""}
            return dialect.format_call(function["name"], {name: arguments[name] for name in arguments if name in names})
    known = ", ".join(tool["function"]["name"] for tool in tools) or "none"
    raise ConfigurationError(f"Expected a tool that takes an argument 'code'; the environment's tools are: {known}.")


def _start(
    agent: AnyAgent,
    observation: str,
    info: Mapping[str, Any],
    seed: int,
    problem: Problem | None,
    reference: Reference | None,
) -> None:
    if not getattr(agent, "needs_problem", False):
        cast(Agent, agent).reset(observation, info, seed=seed)
        return
    told: dict[str, Any] = {"reference": reference} if getattr(agent, "needs_reference", False) else {}
    if problem is None and told.get("reference") is None:
        raise ConfigurationError(
            f"{type(agent).__name__} must be told the problem, and only the environment knows it here: say which "
            "problems to play.",
            option="problems",
        )
    cast(Any, agent).reset(observation, info, seed=seed, problem=problem, **told)
