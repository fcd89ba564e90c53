"""``calculations``: runs each worked calculation of a problem (as in GSM8K) in the environment's tool, then answers.

This reference player receives the problem with its gold answer, to test whether an environment, its tool and its
verifier agree with a data set; with ``corrupt``, whether they reject wrong answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from rstar2_env.core.options.declare import Count, checked
from rstar2_env.dialects import Dialect, make_dialect
from rstar2_env.evaluation.play.episode import python_call
from rstar2_env.problems import Problem
from rstar2_env.problems.perturb import changed_answer

from .base import AGENTS


class Calculations:
    """Runs each worked calculation of a problem in the environment's tool, then gives the problem's answer.

    The calculations are in ``meta["calculations"]``; for "16-3-4=9", the tool runs "16-3-4".

    If the problem has no calculations or the environment has no tools, the first turn is the answer. The tool's results
    are not compared with those in the data set.

    Args:
        corrupt: Whether to give a wrong answer instead of the right answer.
        calls_per_turn: Number of calls in one turn; a problem takes as many turns as its calculations need.
        dialect: The dialect of calls and answers.

    Raises:
        ConfigurationError: ``calls_per_turn`` is below 1.
        UnknownNameError: There is no dialect with this name.
    """

    needs_problem: Literal[True] = True

    @checked
    def __init__(self, corrupt: bool = False, calls_per_turn: Count = 1, dialect: Dialect | str = "rstar2") -> None:
        self._corrupt = corrupt
        self._calls_per_turn = calls_per_turn
        self._dialect = make_dialect(dialect)
        self._turns: list[str] = []

    def reset(self, observation: str, info: Mapping[str, Any], *, seed: int, problem: Problem) -> None:
        """Prepare all turns of the episode.

        Args:
            observation: The text that the environment's ``reset`` returned.
            info: The ``info`` that ``reset`` returned.
            seed: Not used.
            problem: The problem, with its gold answer.
        """
        tools = info.get("tools", ())
        lines = [f"print({line.partition('=')[0]})" for line in problem.meta.get("calculations", ())] if tools else []
        calls = [python_call(self._dialect, tools, line) for line in lines]
        turns = ["\n".join(calls[at : at + self._calls_per_turn]) for at in range(0, len(calls), self._calls_per_turn)]
        answer = changed_answer(problem.answer) if self._corrupt else problem.answer
        self._turns = [self._dialect.format_answer(answer), *reversed(turns)]

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the turn with the next calculations, or with the answer."""
        return self._turns.pop()


AGENTS.register("calculations", Calculations)
