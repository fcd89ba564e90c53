"""Small environments for tests: ``ToyEnv`` with a stub tool, ``PlainEnv`` without this package's base classes.

``PlainWrapper`` is a wrapper that does nothing.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from rstar2_env.env.spaces import UnicodeText
from rstar2_env.env.tool_env import ToolEnv
from rstar2_env.problems import Problem
from rstar2_env.testing.stub_tool import StubTool, ToolPlan
from rstar2_env.verification import Reason, Verdict


class ToyEnv(ToolEnv):
    """Environment with twenty sums, ``p0`` to ``p19`` ("What is 5 + 5?"), and one tool, ``stub``.

    Answers are compared as text.

    Args:
        plan: Answers of the tool; see ``StubTool``.
        **options: Options of ``ToolEnv``; they override this class's own settings.
    """

    def __init__(self, plan: ToolPlan | None = None, **options: Any) -> None:
        self.tool = StubTool(plan)
        problems = [{"id": f"p{n}", "question": f"What is {n} + {n}?", "answer": str(2 * n)} for n in range(20)]
        super().__init__(**{"problems": problems, "tools": [self.tool], "grader": same_text, **options})


def same_text(problem: Problem, answer: str) -> Verdict:
    """Grade an answer: it is right if it equals the gold answer exactly."""
    equal = problem.answer == answer
    return Verdict(equal, Reason.EQUAL if equal else Reason.DIFFERENT, "exact")


class PlainEnv(gym.Env[str, str]):
    """Plain Gymnasium environment with an empty ``info``, for testing that agents do not need any entry of ``info``.

    Args:
        turns: Number of turns in an episode.
    """

    def __init__(self, turns: int = 3) -> None:
        self.observation_space = self.action_space = UnicodeText(1_000_000)
        self._turns, self._left = turns, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode."""
        super().reset(seed=seed)
        self._left = self._turns
        return f"Say something about the number {int(self.np_random.integers(100))}.", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Accept any turn."""
        self._left -= 1
        over = self._left <= 0
        return "" if over else f"Go on; {self._left} more.", float(over), over, False, {}


class PlainWrapper(gym.Wrapper[str, str, str, str]):
    """Wrapper that changes nothing; it adds one layer around an environment."""
