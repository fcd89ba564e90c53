"""Solves problems that come with worked calculations (as GSM8K does): runs each in the tool, then answers.

A reference player: it is told the problem, gold answer and all. It shows that an environment, its tool and its verifier
agree with a data set; with ``corrupt`` that they tell a wrong answer from a right one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from rstar2_env.core.options import Count, checked
from rstar2_env.dialects import Dialect, make_dialect
from rstar2_env.evaluation.play import python_call
from rstar2_env.problems import Problem
from rstar2_env.problems.perturb import changed_answer

from .base import AGENTS


class Calculations:
    """Runs the left side of each ``meta["calculations"]`` ("16-3-4=9"), then gives the problem's ``answer``.

    A problem without calculations is answered at once, and so is any in an environment without tools. Whether the
    tool's numbers are those of the data set is not checked.

    Args:
        corrupt: Answer with something else than the right answer.
        calls_per_turn: Calls in one turn; the calculations of one problem take as many turns as they need.
        dialect: How calls and answers are written.

    Raises:
        ConfigurationError: ``calls_per_turn`` is below 1.
        UnknownNameError: There is no dialect of that name.
    """

    needs_problem: Literal[True] = True

    @checked
    def __init__(self, corrupt: bool = False, calls_per_turn: Count = 1, dialect: Dialect | str = "rstar2") -> None:
        self._corrupt = corrupt
        self._calls_per_turn = calls_per_turn
        self._dialect = make_dialect(dialect)
        self._turns: list[str] = []

    def reset(self, observation: str, info: Mapping[str, Any], *, seed: int, problem: Problem) -> None:
        """Write all turns of the episode, last one first."""
        tools = info.get("tools", ())
        lines = [f"print({line.partition('=')[0]})" for line in problem.meta.get("calculations", ())] if tools else []
        calls = [python_call(self._dialect, tools, line) for line in lines]
        turns = ["\n".join(calls[at : at + self._calls_per_turn]) for at in range(0, len(calls), self._calls_per_turn)]
        answer = changed_answer(problem.answer) if self._corrupt else problem.answer
        self._turns = [self._dialect.format_answer(answer), *reversed(turns)]

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """The next calculation, or the answer."""
        return self._turns.pop()


AGENTS.register("calculations", Calculations)
