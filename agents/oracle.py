"""``oracle``: plays the gold answer or the environment's reference player, to measure the score of a perfect policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.dialects import Dialect, make_dialect
from rstar2_env.env.reference import Reference
from rstar2_env.evaluation.play.episode import python_call
from rstar2_env.problems import Problem
from rstar2_env.problems.perturb import changed_answer

from .base import AGENTS

_NONSENSE = "?"
"""A move that is illegal in every game, played if ``corrupt`` is set."""


class Oracle:
    """Plays the gold answer, after it has run the problem's ``meta["expression"]``, if any, in the environment's tool.

    If the environment has its own reference player, as games and mixtures do, the agent plays that player's turns.

    Args:
        corrupt: Whether to give a wrong answer instead of the gold answer.
        use_tool: Whether to run the expression in the environment's tool.
        dialect: The dialect of calls and answers.

    Raises:
        UnknownNameError: No dialect has this name.
    """

    needs_problem: Literal[True] = True
    needs_reference: Literal[True] = True

    def __init__(self, corrupt: bool = False, use_tool: bool = True, dialect: Dialect | str = "rstar2") -> None:
        self._corrupt = corrupt
        self._use_tool = use_tool
        self._dialect = make_dialect(dialect)
        self._turns: list[str] = []
        self._reference: Reference | None = None

    def reset(
        self,
        observation: str,
        info: Mapping[str, Any],
        *,
        seed: int,
        problem: Problem | None,
        reference: Reference | None = None,
    ) -> None:
        """Prepare all turns of the episode, unless there is a reference player.

        Args:
            observation: The text that the environment's ``reset`` returned.
            info: The ``info`` that ``reset`` returned.
            seed: Not used.
            problem: The problem, with its gold answer.
            reference: Function that returns the next turn of the environment's reference player; ``None`` if the
                environment has none.
        """
        self._reference = reference
        if reference is not None or problem is None:
            return
        answer = changed_answer(problem.answer) if self._corrupt else problem.answer
        self._turns = [self._dialect.format_answer(answer)]
        expression = problem.meta.get("expression")
        if self._use_tool and expression is not None and info.get("tools"):
            self._turns.append(python_call(self._dialect, info["tools"], f"print({expression})"))

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the reference player's next turn, or else a turn with the tool call or the answer.

        Raises:
            ConfigurationError: The episode continues after the answer, and the environment has no reference player.
        """
        if self._reference is not None:
            return self._dialect.format_answer(_NONSENSE) if self._corrupt else self._reference()
        if not self._turns:
            raise ConfigurationError(
                "The agent `oracle` has answered, but the episode continues, and the environment does "
                "not have a method oracle_turn() that provides further turns. Choose another agent; "
                "`rstar2 list agents` lists them."
            )
        return self._turns.pop()


AGENTS.register("oracle", Oracle)
