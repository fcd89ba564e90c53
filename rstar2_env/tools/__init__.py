"""Tools that a policy may call: schemas, calls, results, and the chain of middleware that every call passes through."""

from __future__ import annotations

from rstar2_env.tools.base import CallContext, EpisodeTool, Tool, ToolCall, ToolResult, ToolSpec
from rstar2_env.tools.chain import Handler, Middleware, ToolChain
from rstar2_env.tools.cut import cut_middle
from rstar2_env.tools.function import FunctionTool
from rstar2_env.tools.notebook import NOTEBOOK_TOOL_NAME, NotebookTool
from rstar2_env.tools.python import PYTHON_TOOL_NAME, PythonTool

__all__ = [
    "NOTEBOOK_TOOL_NAME",
    "PYTHON_TOOL_NAME",
    "CallContext",
    "EpisodeTool",
    "FunctionTool",
    "Handler",
    "Middleware",
    "NotebookTool",
    "PythonTool",
    "Tool",
    "ToolCall",
    "ToolChain",
    "ToolResult",
    "ToolSpec",
    "cut_middle",
]
