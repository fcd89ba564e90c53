"""The interface of tools: a schema, a call, a result, and the protocol that every tool implements.

To add a tool, write a function and wrap it in ``FunctionTool`` (``function.py``), or implement ``Tool``. Not covered:
the tools that environments find by name (``by_name.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from rstar2_env.core.status import ToolStatus
from rstar2_env.core.text import encodable


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """The description of a tool for the model.

    Attributes:
        name: The name that calls use.
        description: One or two sentences on what the tool does.
        parameters: JSON schema of the tool's arguments, an object schema.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]

    def schema(self) -> dict[str, Any]:
        """Return the function schema that chat templates expect, as a copy that the caller may change."""
        return {
            "type": "function",
            "function": {"name": self.name, "description": self.description, "parameters": _copied(self.parameters)},
        }


def _copied(value: Any) -> Any:
    """Return a deep copy of a schema as dicts and lists, so that changes to the copy do not affect an environment."""
    if isinstance(value, Mapping):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_copied(item) for item in value]
    return value


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call, as a dialect parsed it from the policy's turn.

    Attributes:
        name: Name of the tool; empty if the call did not parse.
        arguments: Arguments of the call.
        problem: Status and message if the call did not parse, and so cannot be run; else ``None``.
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    problem: tuple[ToolStatus, str] | None = None


@dataclass(frozen=True, slots=True)
class CallContext:
    """Position of a tool call in an episode, and the episode's seed.

    Attributes:
        seed: The episode's seed.
        number: 0-based index of the call within the episode.
        turn: 0-based index of the turn that contains the call.
    """

    seed: int
    number: int
    turn: int


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of one call, and the text that the policy is shown.

    Attributes:
        name: The tool's name, as called.
        status: A member of ``ToolStatus``.
        text: The text that the policy is shown.
        error_type: Name of the exception's class, or the kind of failure, or ``None``.
        exit_code: Exit code of the program, or ``None``.
        truncated: Whether output was omitted from ``text``.
        injected: Whether a wrapper injected this result as a fault.
        wall_s: Wall-clock seconds that the call took; not part of an environment's ``info`` by default.
        session: State of the session in which the call ran: ``"new"``, ``"kept"``, ``"interrupted"`` or ``"ended"``;
            ``None`` for a tool without sessions.
    """

    name: str
    status: ToolStatus
    text: str
    error_type: str | None = None
    exit_code: int | None = None
    truncated: bool = False
    injected: bool = False
    wall_s: float = 0.0
    session: str | None = None

    def record(self) -> dict[str, Any]:
        """Return the call's entry in ``info``; it omits ``text``, and ``wall_s``, which would differ in a replay."""
        record: dict[str, Any] = {
            "name": encodable(self.name),
            "status": str(self.status),
            "error_type": self.error_type,
            "exit_code": self.exit_code,
            "truncated": self.truncated,
            "injected": self.injected,
        }
        return record if self.session is None else {**record, "session": self.session}


@runtime_checkable
class Tool(Protocol):
    """Protocol of a tool that the policy may call."""

    @property
    def spec(self) -> ToolSpec:
        """The tool's name, description and argument schema."""
        ...

    def call(self, arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
        """Run one call whose arguments fit the schema. The policy's errors are reported as a status, never raised."""
        ...

    def close(self) -> None:
        """Release the resources of the tool."""
        ...


@runtime_checkable
class EpisodeTool(Tool, Protocol):
    """A tool that keeps state across the calls of one episode."""

    def end_episode(self) -> None:
        """Drop the state of the episode. Calling this twice is harmless."""
        ...
