"""Base class of environments for tasks of other projects: one answer, graded by the other project's own code."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rstar2_env.core.text import encodable
from rstar2_env.env.tool_env import ToolEnv
from rstar2_env.env.turn_result import Ended
from rstar2_env.problems import ProblemSource
from rstar2_env.tools.by_name import ToolChoice


@dataclass(frozen=True, slots=True)
class Grade:
    """Result of grading a turn with the code of the project that defines the task.

    Attributes:
        answer: The answer that this code extracted from the turn, or ``None``.
        score: The score that this code returned, which becomes the reward.
        correct: Whether the problem counts as solved.
    """

    answer: str | None
    score: float
    correct: bool


class AdaptedEnv(ToolEnv):
    """A ``ToolEnv`` that grades the whole last turn with ``grade``, which a subclass defines.

    Args:
        source: The source of the problems.
        tools: Tools that the policy may call before it answers.
        options: Further arguments of ``ToolEnv``.
    """

    def __init__(self, source: ProblemSource, *, tools: Sequence[ToolChoice], options: Mapping[str, Any]) -> None:
        super().__init__(problems=source, tools=tools, grader=None, **options)

    @abstractmethod
    def grade(self, turn: str) -> Grade:
        """Grade the episode's last turn with the code of the project that defines the task; may raise any exception."""

    def answer_turn(self, turn: str) -> Ended:
        """Grade the turn with ``grade``; if ``grade`` raises an exception, the answer counts as wrong."""
        failure: str | None = None
        try:
            grade = self.grade(turn)
            if not math.isfinite(grade.score):
                raise ValueError(f"the score must be a finite number; got {grade.score}")
        except Exception as error:
            # If the verifier fails on the policy's text, it has found no right answer in it. The exception is reported
            # too, since a verifier that always fails is a bug.
            grade, failure = Grade(None, 0.0, False), type(error).__name__
        if failure is not None:
            return Ended(None, info={"verifier_error": failure})
        if grade.answer is None:
            return Ended(None, grade.score, end="no_answer")
        return Ended(encodable(grade.answer), grade.score, grade.correct)
