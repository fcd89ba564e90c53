"""The protocols of agents, and the function that starts an agent's episode.

Covered: the protocols, and which arguments an agent receives. Not covered: the loop that plays an episode
(``rstar2_env.evaluation.play.episode``), agents themselves (``rstar2_env.agents``), and their tests
(``rstar2_env.testing.check_agent``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol, TypeAlias, cast, runtime_checkable

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.env.reference import Reference
from rstar2_env.problems import Problem


@runtime_checkable
class Agent(Protocol):
    """Turns observations into actions: text in, text out.

    An agent plays one episode at a time; to play several episodes concurrently, create several agents. It reads only
    the values that ``reset`` and ``step`` return.
    """

    def reset(self, observation: str, info: Mapping[str, Any], *, seed: int) -> None:
        """Start an episode from the result of ``env.reset`` and forget the previous episode.

        Args:
            observation: The user's first message.
            info: Contains ``system`` (the system message), ``tools`` (the schemas), and more.
            seed: Seed of the agent's random choices; the same seed must give the same turns.
        """
        ...

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the complete next turn.

        Args:
            observation: The latest observation; at the first turn, the observation that ``reset`` returned.
            info: The ``info`` returned with that observation.
        """
        ...


@runtime_checkable
class InformedAgent(Protocol):
    """An agent that receives the problem and its gold answer: a reference player for tests and baselines.

    It declares this need with ``needs_problem = True``. The code that plays the episode passes the problem; an agent
    never reads it from the environment. With ``needs_reference = True``, the agent also receives the argument
    ``reference``: the environment's own reference player (``rstar2_env.env.reference``), or ``None`` if it has none. If
    there is a reference player, ``problem`` may be ``None``.
    """

    needs_problem: Literal[True]

    def reset(self, observation: str, info: Mapping[str, Any], *, seed: int, problem: Problem) -> None:
        """Start an episode of a given problem.

        Args:
            observation: The user's first message.
            info: Contains ``system`` (the system message), ``tools`` (the schemas), and more.
            seed: Seed of the agent's random choices.
            problem: The problem of the episode, with its gold answer.
        """
        ...

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the complete next turn."""
        ...


AnyAgent: TypeAlias = Agent | InformedAgent


def start_agent(
    agent: AnyAgent,
    observation: str,
    info: Mapping[str, Any],
    *,
    seed: int,
    problem: Problem | None = None,
    reference: Reference | None = None,
) -> None:
    """Start an agent's episode; pass it the problem and the reference player only if it declares a need for them.

    Args:
        agent: The agent that plays the episode.
        observation: The observation that ``env.reset`` returned.
        info: The ``info`` that ``env.reset`` returned.
        seed: Seed of the agent's random choices.
        problem: The problem, for agents with ``needs_problem``.
        reference: The environment's own reference player, for agents with ``needs_reference``.

    Raises:
        ConfigurationError: The agent needs the problem, and there is none.
    """
    if not getattr(agent, "needs_problem", False):
        cast(Agent, agent).reset(observation, info, seed=seed)
        return
    declared: dict[str, Any] = {"reference": reference} if getattr(agent, "needs_reference", False) else {}
    if problem is None and declared.get("reference") is None:
        raise ConfigurationError(
            f"The agent {type(agent).__name__} needs the problem of each episode before the episode "
            "starts, but the environment chooses the problems itself: give the problems to play.",
            option="problems",
        )
    cast(Any, agent).reset(observation, info, seed=seed, problem=problem, **declared)
