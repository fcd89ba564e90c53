"""Plays one episode: an agent and an environment, turn by turn, using only ``reset`` and ``step``.

Covered: the loop, its record, and how to write a call of a tool in a dialect. Not covered: agents
(``rstar2_env.env.agent``), many episodes at once (``rstar2_env.evaluation.run``), policies that are trained
(``rstar2_env.rollout``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium as gym

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError, UnusableReplyError
from rstar2_env.core.telemetry import agent_span
from rstar2_env.dialects import Dialect
from rstar2_env.env.agent import AnyAgent, start_agent
from rstar2_env.env.reference import reference_of
from rstar2_env.problems import Problem


class StopPlayingError(Exception):
    """Raised between two turns of an episode after a request to stop."""


def play_episode(
    env: gym.Env[str, str],
    agent: AnyAgent,
    *,
    seed: int = 0,
    problem: Problem | None = None,
    draws: int | None = None,
    stopped: Callable[[], bool] | None = None,
) -> Episode:
    """Play one episode to its end.

    If the agent raises ``UnusableReplyError`` because its reply cannot be played, the episode ends and does not count.
    If the agent has a mapping ``usage`` (requests, tokens and cost), the episode keeps a copy of it.

    Args:
        env: Any text environment.
        agent: The agent that plays.
        seed: Seed of the environment's ``reset``.
        problem: The problem to play, passed to ``reset`` and to an agent that needs it; ``None`` lets the environment
            choose.
        draws: Seed of the agent's random draws; ``None`` means ``seed``.
        stopped: Called before every turn; once it returns true, the episode is abandoned.

    Raises:
        ConfigurationError: The agent needs the problem, and none was given.
        StopPlayingError: ``stopped`` returned true.
    """
    with agent_span(type(agent).__name__) as span:
        episode = _played(env, agent, seed, problem, draws, stopped)
        span.episode(episode)
    return episode


def _played(
    env: gym.Env[str, str],
    agent: AnyAgent,
    seed: int,
    problem: Problem | None,
    draws: int | None,
    stopped: Callable[[], bool] | None,
) -> Episode:
    observation, info = env.reset(seed=seed, options=None if problem is None else {"problem": problem})
    episode = Episode(seed=seed, task=env.spec.id if env.spec is not None else "").begin(observation, info)
    agent_seed = seed if draws is None else draws
    start_agent(agent, observation, info, seed=agent_seed, problem=problem, reference=reference_of(env))
    over = False
    while not over:
        if stopped is not None and stopped():
            raise StopPlayingError
        try:
            turn = agent.act(observation, info)
        except UnusableReplyError as unusable:
            episode.void(unusable.end, str(unusable))
            break
        returned = env.step(turn)
        over = episode.step(turn, returned)
        observation, info = returned[0], returned[4]
    episode.usage = dict(getattr(agent, "usage", {}))
    episode.recorded_tokens = int(episode.usage.get("completion_tokens", 0))
    return episode


def python_call(dialect: Dialect, tools: Sequence[Mapping[str, Any]], code: str) -> str:
    """Write a call that runs ``code`` in the first tool that takes code.

    Args:
        dialect: The dialect of the call.
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
    raise ConfigurationError(
        f"A program cannot be run, because no tool of the environment takes an argument 'code'; its tools are: {known}."
    )
