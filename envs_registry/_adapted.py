"""What the adapters of other projects' worlds share: one answer, graded by the other project's own code."""

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
from rstar2_env.tools import Tool


@dataclass(frozen=True, slots=True)
class Grade:
    """What the other project says of a turn.

    Attributes:
        answer: The answer as it read it, or ``None``.
        score: The reward.
        correct: Whether it counts as solved.
    """

    answer: str | None
    score: float
    correct: bool


class AdaptedEnv(ToolEnv):
    """A ``ToolEnv`` whose last turn is graded whole by ``grade``."""

    def __init__(self, source: ProblemSource, *, tools: Sequence[Tool], options: Mapping[str, Any]) -> None:
        super().__init__(problems=source, tools=tools, grader=None, **options)

    @abstractmethod
    def grade(self, turn: str) -> Grade:
        """Grade the turn that ended the episode. Anything may be raised: the other project decides."""

    def answer_turn(self, turn: str) -> Ended:
        """Have the other project grade it; what its verifier chokes on is no right answer."""
        failure: str | None = None
        try:
            grade = self.grade(turn)
            if not math.isfinite(grade.score):
                raise ValueError(f"the score is {grade.score}")
        except Exception as error:
            # A verifier that chokes on what a policy wrote has not found a right answer in it. It is named, since a
            # verifier that always chokes is a mistake to be found.
            grade, failure = Grade(None, 0.0, False), type(error).__name__
        if failure is not None:
            return Ended(None, info={"verifier_error": failure})
        if grade.answer is None:
            return Ended(None, grade.score, end="no_answer")
        return Ended(encodable(grade.answer), grade.score, grade.correct)
