"""How a tool call went: one closed enumeration, shared by every layer.

A status is set by the layer that saw the failure (the dialect, the tool or the sandbox). It is never found by searching
text, so a program that prints the word "error" is still a success, and one that dies silently is not.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class ToolStatus(StrEnum):
    """All ways in which a tool call can end."""

    OK = "ok"
    """It ran and showed something."""
    EMPTY = "empty"
    """It ran and showed nothing."""
    MALFORMED = "malformed"
    """The call did not parse: it was unclosed, or its JSON was broken."""
    UNKNOWN_TOOL = "unknown_tool"
    """The call names a tool that does not exist."""
    INVALID_ARGUMENTS = "invalid_arguments"
    """The arguments do not fit the tool's schema."""
    SYNTAX_ERROR = "syntax_error"
    """The program does not compile; nothing of it ran."""
    EXCEPTION = "exception"
    """The program raised, exited with a code other than zero, or was killed by a signal of its own."""
    TIMEOUT = "timeout"
    """The program used up its wall-clock or CPU time."""
    MEMORY = "memory"
    """The program used up its memory."""
    OUTPUT_LIMIT = "output_limit"
    """The program wrote more than the hard limit and was ended for it."""
    BLOCKED = "blocked"
    """The sandbox refused what the program tried."""
    UNAVAILABLE = "unavailable"
    """An infrastructure failure: a worker died, a service did not answer. Never the policy's fault."""

    @property
    def is_error(self) -> bool:
        """Whether the policy made an error: everything but ``ok``, ``empty`` and ``unavailable``."""
        return self not in _NOT_THE_POLICYS_ERROR

    @property
    def counts(self) -> bool:
        """Whether the call counts at all in a share of errors: everything but ``unavailable``."""
        return self is not ToolStatus.UNAVAILABLE


_NOT_THE_POLICYS_ERROR = frozenset({ToolStatus.OK, ToolStatus.EMPTY, ToolStatus.UNAVAILABLE})


def error_share(statuses: Iterable[ToolStatus]) -> float | None:
    """Share of the calls that are the policy's errors, in [0, 1]; ``None`` when no call counts.

    ``unavailable`` calls are in neither the numerator nor the denominator.
    """
    counted = [status for status in statuses if status.counts]
    if not counted:
        return None
    return sum(status.is_error for status in counted) / len(counted)
