"""The tools of an environment, and the chain of middleware that every call passes through.

Wrappers for budgets and injected faults add a middleware to the chain, since a wrapper around ``step`` sees only text.
Calls that did not parse pass through the chain too, so that a budget counts them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.status import ToolStatus
from rstar2_env.core.telemetry import tool_span
from rstar2_env.tools.base import CallContext, EpisodeTool, Tool, ToolCall, ToolResult, ToolSpec
from rstar2_env.tools.schema import invalid_argument

Handler = Callable[[ToolCall, CallContext], ToolResult]
Middleware = Callable[[ToolCall, CallContext, Handler], ToolResult]

_LONGEST_NAME = 80


class ToolChain:
    """Passes each call through the middleware, outermost first, and then to the tool that the call names.

    Args:
        tools: The tools, with distinct names.

    Raises:
        ConfigurationError: Two tools have the same name.
    """

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            if tool.spec.name in self._tools:
                raise ConfigurationError(f"Two tools are named {tool.spec.name!r}; give each tool a different name.")
            self._tools[tool.spec.name] = tool
        self._episode_tools = [tool for tool in self._tools.values() if isinstance(tool, EpisodeTool)]
        self._middleware: list[Middleware] = []

    @property
    def specs(self) -> list[ToolSpec]:
        """The schema of each tool."""
        return [tool.spec for tool in self._tools.values()]

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools of the environment."""
        return tuple(self._tools.values())

    def use(self, middleware: Middleware) -> None:
        """Add a middleware around all existing middleware."""
        self._middleware.insert(0, middleware)

    def remove(self, middleware: Middleware) -> None:
        """Remove a middleware.

        Raises:
            ValueError: The middleware is not in the chain.
        """
        self._middleware.remove(middleware)

    def call(self, call: ToolCall, context: CallContext) -> ToolResult:
        """Run one call through the chain. Errors of the policy are reported as a status."""
        with tool_span(call.name if call.name in self._tools else "") as span:
            result = self._handler(0)(call, context)
            span.tool_result(result.status, result.error_type, result.injected, call.arguments, result.text)
        return result

    def end_episode(self) -> None:
        """End the episode of every tool that keeps state across calls."""
        for tool in self._episode_tools:
            tool.end_episode()

    def close(self) -> None:
        """Close every tool."""
        for tool in self._tools.values():
            tool.close()

    def _handler(self, depth: int) -> Handler:
        if depth == len(self._middleware):
            return self._run
        return lambda call, context: self._middleware[depth](call, context, self._handler(depth + 1))

    def _run(self, call: ToolCall, context: CallContext) -> ToolResult:
        if call.problem is not None:
            status, message = call.problem
            return ToolResult(call.name, status, message, error_type=str(status))
        tool = self._tools.get(call.name)
        if tool is None:
            known = ", ".join(self._tools) or "none"
            # A name may be as long as a turn, and the message becomes part of every later prompt.
            shown = call.name if len(call.name) <= _LONGEST_NAME else call.name[:_LONGEST_NAME] + "..."
            message = f"There is no tool named {shown!r}. The tools are: {known}. Nothing was run."
            return ToolResult(call.name, ToolStatus.UNKNOWN_TOOL, message, error_type="unknown_tool")
        fault = invalid_argument(tool.spec.parameters, call.arguments)
        if fault is not None:
            message = f"The arguments do not fit {call.name}: {fault}. Nothing was run."
            return ToolResult(call.name, ToolStatus.INVALID_ARGUMENTS, message, error_type="invalid_arguments")
        return tool.call(call.arguments, context)
