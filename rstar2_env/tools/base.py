"""What a tool is: its schema, a call, a result, and the protocol that every tool implements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from rstar2_env.core.status import ToolStatus
from rstar2_env.core.text import encodable


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """What the model is told about a tool.

    Attributes:
        name: The name that calls use.
        description: One or two sentences on what it does.
        parameters: JSON schema of its arguments, an object schema.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]

    def schema(self) -> dict[str, Any]:
        """The function schema as chat models know it; a copy, which the caller may change."""
        return {
            "type": "function",
            "function": {"name": self.name, "description": self.description, "parameters": _copied(self.parameters)},
        }


def _copied(value: Any) -> Any:
    """Plain dicts and lists all the way down: what ``info`` gives away must not be what every environment reads."""
    if isinstance(value, Mapping):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_copied(item) for item in value]
    return value


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call as a dialect read it from the policy's turn.

    Attributes:
        name: Name of the tool; empty when the call did not parse.
        arguments: Its arguments.
        problem: Status and message when the call did not parse; such a call reaches no tool.
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    problem: tuple[ToolStatus, str] | None = None


@dataclass(frozen=True, slots=True)
class CallContext:
    """Where in an episode a call stands.

    Attributes:
        seed: The episode's seed.
        number: 0-based number of the call within the episode.
        turn: 0-based number of the turn.
    """

    seed: int
    number: int
    turn: int


@dataclass(frozen=True, slots=True)
class ToolResult:
    """How one call went, and what the policy is shown of it.

    Attributes:
        name: The tool's name, as called.
        status: One of the closed list.
        text: What the policy is shown.
        error_type: The exception's class or the kind of failure, or ``None``.
        exit_code: Exit code of the program, or ``None``.
        truncated: Whether output was left out of ``text``.
        injected: Whether a wrapper made this status up.
        wall_s: Seconds that the call took; never part of an environment's ``info`` by default.
        session: What became of the session that the call ran in: ``"new"``, ``"kept"``, ``"interrupted"`` or
            ``"ended"``; ``None`` for a tool that keeps none.
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
        """The part of the result that an environment reports in ``info``: deterministic, no clocks."""
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
    """A function that the policy may call."""

    @property
    def spec(self) -> ToolSpec:
        """Its schema."""
        ...

    def call(self, arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
        """Run one call whose arguments fit the schema. What the policy does wrong is a status, never an exception."""
        ...

    def close(self) -> None:
        """Let go of what it holds."""
        ...


@runtime_checkable
class EpisodeTool(Tool, Protocol):
    """A tool that keeps something across the calls of one episode."""

    def end_episode(self) -> None:
        """Let go of it: the episode is over, or another one begins. Doing so twice is harmless."""
        ...
