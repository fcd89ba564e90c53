"""``StubTool``: a tool that answers from a plan, for testing environments and middleware."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.status import ToolStatus
from rstar2_env.testing.plan import StubPlan
from rstar2_env.tools.base import CallContext, ToolResult, ToolSpec

ToolAnswer: TypeAlias = "ToolResult | ToolStatus | str"
ToolPlan: TypeAlias = "ToolAnswer | Sequence[ToolAnswer] | Callable[[Mapping[str, Any], CallContext], ToolAnswer]"


class StubTool:
    """Answers every call with planned results, immediately or after a set time. Safe to call from any thread.

    Args:
        plan: One answer, a sequence of answers (the last one repeats), or a function of the arguments and the
            ``CallContext``. An answer is a ``ToolResult``, a ``ToolStatus``, or the text of a success. Without a plan
            the tool returns its arguments as JSON.
        name: The name that calls use.
        description: Description of the tool for the model.
        parameters: JSON schema of the arguments; by default a schema that accepts any object.
        wait_s: Seconds that every call takes.

    Attributes:
        spec: The name, description and schema of the tool.
    """

    def __init__(
        self,
        plan: ToolPlan | None = None,
        *,
        name: str = "stub",
        description: str = "Shows its arguments.",
        parameters: Mapping[str, Any] | None = None,
        wait_s: float = 0.0,
    ) -> None:
        self.spec = ToolSpec(name, description, {"type": "object"} if parameters is None else parameters)
        self._plan: StubPlan[ToolResult] = StubPlan(_echo if plan is None else plan, self._result)
        self.wait_s = wait_s
        self.calls: list[tuple[Mapping[str, Any], CallContext]] = []
        self.closed = False

    def call(self, arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
        """Record the call in ``calls`` and answer it."""
        self.calls.append((arguments, context))
        answer = self._plan.next(arguments, context)
        if self.wait_s > 0:
            time.sleep(self.wait_s)
        return replace(answer, wall_s=answer.wall_s or self.wait_s)

    def close(self) -> None:
        """Record that the tool was closed. Idempotent."""
        self.closed = True

    def _result(self, answer: Any) -> ToolResult:
        """Convert an answer of the plan to a result."""
        if isinstance(answer, ToolResult):
            return answer
        if isinstance(answer, ToolStatus):
            error_type = str(answer) if answer.is_error else None
            return ToolResult(self.spec.name, answer, f"stub: {answer}", error_type=error_type)
        if isinstance(answer, str):
            return ToolResult(self.spec.name, ToolStatus.OK if answer else ToolStatus.EMPTY, answer)
        raise ConfigurationError(f"A stub tool answers with a ToolResult, a ToolStatus or a str, not {answer!r}.")


def _echo(arguments: Mapping[str, Any], context: CallContext) -> str:
    return json.dumps(dict(arguments), ensure_ascii=False)
