"""Tools that a policy may call: schemas, calls, results, and the chain of middleware that every call passes through."""

from __future__ import annotations

from rstar2_env.tools.base import CallContext, Tool, ToolCall, ToolResult, ToolSpec
from rstar2_env.tools.chain import Handler, Middleware, ToolChain
from rstar2_env.tools.cut import cut_middle
from rstar2_env.tools.function import FunctionTool
from rstar2_env.tools.python import PYTHON_TOOL_NAME, PythonTool

__all__ = [
    "PYTHON_TOOL_NAME",
    "CallContext",
    "FunctionTool",
    "Handler",
    "Middleware",
    "PythonTool",
    "Tool",
    "ToolCall",
    "ToolChain",
    "ToolResult",
    "ToolSpec",
    "cut_middle",
]
