"""The protocols of agents, and how an agent's episode is started.

Covered: the protocols, and passing each agent what it asks for. Not covered: playing
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
    """Text in, text out: turns observations into actions.

    An agent plays one episode at a time; to play several at once, make several agents. It reads what ``reset`` and
    ``step`` return, and nothing else of the environment.
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
    """An agent that is given the problem and its gold answer: a reference player for tests and baselines.

    It declares this with ``needs_problem = True``. The code that plays the episode passes the problem; no agent takes
    it from the environment. With ``needs_reference = True`` it is also given, as ``reference=``, the environment's own
    reference player (``rstar2_env.env.reference``), or ``None``; where there is one, ``problem`` may be ``None``.
    """

    needs_problem: Literal[True]

    def reset(self, observation: str, info: Mapping[str, Any], *, seed: int, problem: Problem) -> None:
        """Start an episode of a given problem.

        Args:
            observation: The user's first message.
            info: Among others ``system`` (the system message) and ``tools`` (the schemas).
            seed: Seed of the agent's random choices.
            problem: The problem of the episode, with its gold answer.
        """
        ...

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """The next turn, whole."""
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
    """Start an episode of an agent; it gets the problem and the reference player only if it asks for them.

    Args:
        agent: The agent.
        observation: What ``env.reset`` returned.
        info: What came with it.
        seed: For an agent that draws anything.
        problem: What is played, for an agent that must be told.
        reference: The environment's own reference player, for an agent that asks for it.

    Raises:
        ConfigurationError: The agent needs the problem, and there is none.
    """
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
