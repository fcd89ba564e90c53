"""Tools by name: ``python``, ``notebook``, and ``mcp:ADDRESS`` for all tools of an MCP server.

Not covered: functions and tools of your own, which are given as objects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from rstar2_env.core import trust
from rstar2_env.core.errors import ConfigurationError, UnknownNameError
from rstar2_env.core.options.declare import call_with_options
from rstar2_env.core.options.parts import part_named, parts_within, read_part
from rstar2_env.tools.base import Tool
from rstar2_env.tools.notebook import NotebookTool
from rstar2_env.tools.python import PythonTool

ToolChoice: TypeAlias = Tool | str | Mapping[str, Any]
"""A tool, a name with or without options (``mcp:./server.py:timeout_s=5``), or a table with ``name`` and options."""

_MCP = "mcp:"
_PLAIN: Mapping[str, Callable[..., Tool]] = {"python": PythonTool, "notebook": NotebookTool}


def make_tools(tools: Sequence[ToolChoice], own: Mapping[str, Callable[[], Tool]] | None = None) -> list[Tool]:
    """Create the tools of an environment.

    Args:
        tools: The tools, in the order of their schemas in the prompt; one name stands for several tools if it is
            an MCP server.
        own: For ``python`` and ``notebook``, functions that create the tool with the environment's sandbox and limits.

    Raises:
        UnknownNameError: There is no tool of that name.
        ConfigurationError: A name or an option is not valid.
        MissingExtraError: The extra ``mcp`` is not installed.
        ToolServerError: An MCP server does not start or does not answer.
        UntrustedError: An MCP server, or an option that gives it more rights, comes from a file, not from the user.
    """
    known = {**_PLAIN, **(own or {})}
    made: list[Tool] = []
    for choice in tools:
        if isinstance(choice, Tool):
            made.append(choice)
            continue
        if not isinstance(choice, (str, Mapping)):
            raise ConfigurationError(
                f"Each entry of `tools` must be {', '.join(known)}, mcp:ADDRESS or a tool object; got {choice!r}.",
                option="tools",
            )
        part = read_part(choice, "tool")
        if part.name.startswith(_MCP):
            trust.check_server(part, parts_within)
            # Imported here: only these tools need the extra.
            from rstar2_env.tools.mcp.options import ServerOptions
            from rstar2_env.tools.mcp.server import McpServer

            with part_named("tool", part):
                target = part.name.removeprefix(_MCP)
                if "target" in part.options:
                    raise ConfigurationError(
                        "The address of an MCP server must be written after mcp:, not as an option."
                    )
                options = call_with_options("tool 'mcp'", ServerOptions, {"target": target, **part.options})
            made += McpServer(options).tools
        elif part.name in known:
            if part.options:
                raise ConfigurationError(
                    f"The tool {part.name!r} does not take options here, because the options `sandbox`, "
                    "`limits` and `max_output` of the environment apply to it: omit them.",
                    option="tools",
                )
            made.append(known[part.name]())
        else:
            raise UnknownNameError("tool", part.name, [*known, f"{_MCP}ADDRESS"])
    return made
