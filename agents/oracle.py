"""Answers with the gold answer: what a perfect policy would earn, and the test of an environment's own verifier."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from rstar2_env.dialects import Dialect, make_dialect
from rstar2_env.errors import ConfigurationError
from rstar2_env.play import python_call
from rstar2_env.problems import Problem
from rstar2_env.problems.perturb import changed_answer

from .base import agents


class Oracle:
    """Is told the problem; runs ``meta["expression"]`` in the tool when there is one, and gives the gold answer.

    Args:
        corrupt: Answer with something else than the gold answer.
        use_tool: Run the expression at all.
        dialect: How calls and answers are written.

    Raises:
        UnknownNameError: There is no dialect of that name.
    """

    needs_problem: Literal[True] = True

    def __init__(self, corrupt: bool = False, use_tool: bool = True, dialect: Dialect | str = "rstar2") -> None:
        self._corrupt = corrupt
        self._use_tool = use_tool
        self._dialect = make_dialect(dialect)
        self._turns: list[str] = []

    def reset(self, observation: str, info: Mapping[str, Any], *, seed: int, problem: Problem) -> None:
        """Write all turns of the episode, last one first."""
        answer = changed_answer(problem.answer) if self._corrupt else problem.answer
        self._turns = [self._dialect.format_answer(answer)]
        expression = problem.meta.get("expression")
        if self._use_tool and expression is not None and info.get("tools"):
            self._turns.append(python_call(self._dialect, info["tools"], f"print({expression})"))

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """The call, or the answer.

        Raises:
            ConfigurationError: The environment goes on after the answer, as a game does.
        """
        if not self._turns:
            raise ConfigurationError(
                "The oracle knows one answer, and this environment goes on after it (a game, say). Choose another "
                "agent; `rstar2 agents` lists them."
            )
        return self._turns.pop()


agents.register("oracle", Oracle)
