"""``ToyEnv``: a small environment on a stub tool, for testing wrappers, agents, trainers and the turn loop itself."""

from __future__ import annotations

from typing import Any

from rstar2_env.env.tool_env import ToolEnv
from rstar2_env.problems import Problem
from rstar2_env.testing.stub_tool import StubTool, ToolPlan
from rstar2_env.verification import Reason, Verdict


class ToyEnv(ToolEnv):
    """Twenty sums, ``p0`` to ``p19`` ("What is 5 + 5?"), one tool named ``stub``, answers compared as text.

    Args:
        plan: What the tool answers; see ``StubTool``.
        **options: Everything that ``ToolEnv`` takes; they replace what is set here.
    """

    def __init__(self, plan: ToolPlan | None = None, **options: Any) -> None:
        self.tool = StubTool(plan)
        problems = [{"id": f"p{n}", "question": f"What is {n} + {n}?", "answer": str(2 * n)} for n in range(20)]
        super().__init__(**{"problems": problems, "tools": [self.tool], "grader": same_text, **options})


def same_text(problem: Problem, answer: str) -> Verdict:
    """An answer is right if it equals the gold answer exactly."""
    equal = problem.answer == answer
    return Verdict(equal, Reason.EQUAL if equal else Reason.DIFFERENT, "exact")
