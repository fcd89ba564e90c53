"""The Python tool of rStar2-Agent (arXiv 2508.20722): ``execute_python_code_with_standard_io(code, input)``.

Covered: one program for each call, in a fresh process of a sandbox. Not covered: state across calls (see ``notebook``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rstar2_env.sandbox.job import Job
from rstar2_env.tools.base import CallContext, ToolResult, ToolSpec
from rstar2_env.tools.sandboxed import SandboxTool, call_seed

PYTHON_TOOL_NAME = "execute_python_code_with_standard_io"


class PythonTool(SandboxTool):
    """Runs the policy's programs in a sandbox, each in a fresh process; it has the arguments of ``SandboxTool``."""

    schema = ToolSpec(
        name=PYTHON_TOOL_NAME,
        description=(
            "Run a Python program in a fresh process and return what it printed, followed by the value of its last "
            "expression. There is no network."
        ),
        parameters={
            "type": "object",
            "properties": {
                "code": {"type": "string", "description": "The Python program."},
                "input": {
                    "type": "string",
                    "description": "What the program reads from standard input; may be empty.",
                },
            },
            "required": ["code", "input"],
            # Without this, {"code": ..., "input": "", "timeout": 60} would run, although no such limit is applied.
            "additionalProperties": False,
        },
    )
    noun = "program"

    def call(self, arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
        """Run ``arguments["code"]`` with ``arguments["input"]`` on its standard input."""
        job = Job(code=arguments["code"], stdin=arguments["input"], limits=self._limits, seed=call_seed(context))
        return self._result(self._open().run(job))
