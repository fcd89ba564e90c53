"""An environment in which a policy that knows nothing calls the tool all the time: what its turns say decides little.

A turn that begins with a lower-case letter answers, right if its second character is one too; any other turn is a call,
whose program waits a moment and prints. So a small model with random weights keeps a sandbox busy, and can learn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rstar2_env.env.grading import GoldGrader
from rstar2_env.env.tool_env import ToolEnv
from rstar2_env.tools import PythonTool
from rstar2_env.tools.base import ToolCall, ToolResult, ToolSpec
from rstar2_env.tools.python import PYTHON_TOOL_NAME


class AnythingCalls:
    """The dialect of that."""

    name, role = "anything_calls", "user"
    stop: tuple[str, ...] = ()

    def system(self, tools: Sequence[ToolSpec]) -> str:
        return ""

    def user(self, question: str) -> str:
        return question

    def calls(self, turn: str) -> list[ToolCall]:
        if turn[:1].islower():
            return []
        code = f"import time; time.sleep(0.05); print({len(turn)} * 6)"
        return [ToolCall(PYTHON_TOOL_NAME, {"code": code, "input": ""})]

    def results(self, results: Sequence[ToolResult]) -> str:
        return "".join(result.text for result in results)

    def answer(self, turns: Sequence[str]) -> str | None:
        last = turns[-1] if turns else ""
        return str(int(last[1:2].islower())) if last[:1].islower() else None

    def answer_tags(self, turns: Sequence[str]) -> int:
        return int(self.answer(turns) is not None)

    def format_call(self, name: str, arguments: Mapping[str, Any]) -> str:
        return "1"

    def format_answer(self, answer: str) -> str:
        return "aa"


class ChainEnv(ToolEnv):
    """The environment.

    Args:
        sandbox_url: Where ``rstar2 sandbox serve`` listens.
        split: Ignored.
    """

    def __init__(self, sandbox_url: str, split: str = "train") -> None:
        problems = [{"id": f"p{number}", "question": f"Say {number}.", "answer": "1"} for number in range(40)]
        # A server that is killed takes some seconds to start again on a busy machine.
        sandbox = {"provider": "remote", "url": sandbox_url, "reconnect_timeout_s": 120.0, "retries": 3}
        super().__init__(
            problems=problems, tools=[PythonTool(sandbox)], dialect=AnythingCalls(), grader=GoldGrader(), max_turns=4
        )
