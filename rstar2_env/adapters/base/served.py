"""``ServedEnv``: an environment of this package that another framework plays, and the rows of its data set.

Covered: the record of the episode, the results of a turn's calls, the error if the environment is not available, the
seed or the problem that a row selects. Not covered: the framework's own interface, which each adapter implements.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import gymnasium as gym

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError, ServiceError
from rstar2_env.env.turn_result import StepReturn
from rstar2_env.tools import CallContext, ToolCall, ToolResult
from rstar2_env.tools.chain import Handler
from rstar2_env.wrappers.base import use_middleware
from rstar2_env.wrappers.make import make_env

OVER = "The episode is over; nothing was run."
"""Text returned to a policy that calls a tool after the end of its episode."""


class ServedEnv:
    """An environment with the record of its running episode.

    Args:
        env: The environment that the framework plays.
        name: Name of the framework, for error messages.

    Attributes:
        env: The given environment.
        episode: The record of the running episode.
        over: True if no episode is running.
        results: Results of the tool calls of the last turn.
    """

    def __init__(self, env: gym.Env[str, str], name: str) -> None:
        self.env, self.episode, self.over = env, Episode(), True
        self.results: list[ToolResult] = []
        if hasattr(env.unwrapped, "tools"):
            use_middleware(env, self._record, name)

    def reset(
        self, seed: int, options: dict[str, Any] | None, *, show_system: bool = True
    ) -> tuple[str, dict[str, Any]]:
        """Start an episode, and return the result of the environment's ``reset``.

        Args:
            seed: Seed of ``reset``.
            options: Options of ``reset``.
            show_system: Whether the record begins with the system message.
        """
        text, info = self.env.reset(seed=seed, options=options)
        self.episode = Episode(seed=seed).begin(text, info if show_system else {**info, "system": ""})
        self.over = False
        return text, info

    def play(self, turn: str) -> StepReturn:
        """Play one turn, record it, and return the result of the environment's ``step``."""
        self.results.clear()
        returned: StepReturn = self.env.step(turn)  # type: ignore[assignment]  # Gymnasium's reward is SupportsFloat
        self.over = self.episode.step(turn, returned)
        return returned

    def step(self, turn: str) -> StepReturn:
        """Play one turn as ``play`` does, but raise an error if the episode ended as ``unavailable``.

        Raises:
            ServiceError: The environment was not available.
        """
        returned = self.play(turn)
        if self.episode.failed:
            raise ServiceError(
                "The environment was not available, so this episode has no reward: do not train on it or count it.",
                cause="lost",
            )
        return returned

    def text_of_calls(self, observation: str) -> str:
        """Return the results of the last turn's calls without the dialect's tags; without calls, the observation."""
        if self.results:
            return "\n".join(result.text for result in self.results)
        return observation or (f"The episode is over ({self.episode.end})." if self.over else "")

    def _record(self, call: ToolCall, context: CallContext, handler: Handler) -> ToolResult:
        result = handler(call, context)
        self.results.append(result)
        return result


def start_of(row: Mapping[str, Any], adapter: str, also: str = "") -> tuple[int, dict[str, Any] | None]:
    """Return the seed and the options of ``reset`` that a row of a data set selects.

    Args:
        row: The row; ``seed`` or ``problem_id`` selects the problem.
        adapter: Name of the module in ``rstar2_env.adapters`` whose function ``rows`` makes such rows.
        also: Other columns that could select the problem, for the error message ("question and answer, ").

    Raises:
        ConfigurationError: The row has neither ``seed`` nor ``problem_id``, so the episodes of one group would get
            different problems.
    """
    seed, problem_id = row.get("seed"), row.get("problem_id")
    if seed is None and problem_id is None:
        raise ConfigurationError(
            f"A row must have {also}seed or problem_id; this row has {', '.join(sorted(row)) or 'nothing'}. "
            f"rstar2_env.adapters.{adapter}.rows makes such rows."
        )
    return int(seed or 0), None if problem_id is None else {"problem_id": str(problem_id)}


def starts(
    env: str, count: int, seed: int, options: Mapping[str, Any]
) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Reset an environment once for each row of a new data set.

    Args:
        env: The environment, as for ``make_env``.
        count: Number of rows.
        seed: Different seeds give different problems.
        options: Options of ``make_env``.

    Yields:
        The text and the ``info`` of ``reset``, and the ``seed`` and ``problem_id`` that select this episode.
    """
    made = make_env(env, **options)
    for number in range(seed * count, (seed + 1) * count):
        text, info = made.reset(seed=number)
        yield text, info, {"seed": number, "problem_id": info["problem_id"]}
    made.close()


def tool_schemas(env: gym.Env[str, str]) -> list[dict[str, Any]] | None:
    """Return the schemas of an environment's tools (``None`` if it has no tools), and close the environment."""
    try:
        chain = getattr(env.unwrapped, "tools", None)
        return None if chain is None else [spec.schema() for spec in chain.specs]
    finally:
        env.close()
