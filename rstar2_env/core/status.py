"""``ToolStatus``: how a tool call ended; one closed enumeration, shared by all packages.

The layer that detects a failure (the dialect, the tool or the sandbox) sets the status. It is never inferred from text,
so a program that prints the word "error" is still a success, and a program that dies silently is not a success.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class ToolStatus(StrEnum):
    """All ways in which a tool call can end."""

    OK = "ok"
    """The call ran and printed output."""
    EMPTY = "empty"
    """The call ran and printed nothing."""
    MALFORMED = "malformed"
    """The call did not parse: it was unclosed, or its JSON was broken."""
    UNKNOWN_TOOL = "unknown_tool"
    """The call names a tool that does not exist."""
    INVALID_ARGUMENTS = "invalid_arguments"
    """The arguments do not fit the tool's schema."""
    SYNTAX_ERROR = "syntax_error"
    """The program does not compile; nothing of it ran."""
    EXCEPTION = "exception"
    """The program raised an exception, exited with a nonzero code, or was killed by a signal that it caused."""
    TIMEOUT = "timeout"
    """The program used up its wall-clock or CPU time."""
    MEMORY = "memory"
    """The program used up its memory."""
    OUTPUT_LIMIT = "output_limit"
    """The program exceeded the hard limit on output and was ended."""
    BLOCKED = "blocked"
    """The sandbox refused an operation of the program."""
    UNAVAILABLE = "unavailable"
    """Infrastructure failure: a worker died, a service did not answer. Never the policy's fault."""

    @property
    def is_error(self) -> bool:
        """Whether the policy caused an error: true for every status but ``ok``, ``empty`` and ``unavailable``."""
        return self not in _NOT_THE_POLICYS_ERROR

    @property
    def counts(self) -> bool:
        """Whether the call counts when a share of errors is computed: true for every status but ``unavailable``."""
        return self is not ToolStatus.UNAVAILABLE


_NOT_THE_POLICYS_ERROR = frozenset({ToolStatus.OK, ToolStatus.EMPTY, ToolStatus.UNAVAILABLE})


def error_share(statuses: Iterable[ToolStatus]) -> float | None:
    """Share of calls that ended with an error of the policy, in [0, 1]; ``None`` if no call counts.

    ``unavailable`` calls are in neither the numerator nor the denominator.
    """
    counted = [status for status in statuses if status.counts]
    if not counted:
        return None
    return sum(status.is_error for status in counted) / len(counted)
