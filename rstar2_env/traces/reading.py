"""Reads files of tool-use traces, as ``rstar2 traces`` writes them, and checks the form of each trace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rstar2_env.core.episode import Message
from rstar2_env.core.errors import ConfigurationError, ProblemFormatError
from rstar2_env.problems.files.jsonl import placed_objects


def read_traces(path: str | Path) -> list[dict[str, Any]]:
    """Read a file that ``rstar2 traces`` wrote.

    Raises:
        ConfigurationError: The file cannot be read.
        ProblemFormatError: A line is not a trace; the message names the line.
    """
    records = []
    for place, record in placed_objects(Path(path)):
        messages_of(record, place)
        records.append(record)
    return records


def messages_of(record: Mapping[str, Any], where: str) -> list[Message]:
    """Return the messages of a trace.

    Args:
        record: The trace.
        where: Place of the trace, for the error: "Trace 2", "traces.jsonl:2".

    Raises:
        ProblemFormatError: The record is not a trace.
    """
    try:
        return [Message(message["role"], message["content"]) for message in record["messages"]]
    except (KeyError, TypeError) as error:
        raise not_a_trace(where, _fault(record) or str(error)) from error


def not_a_trace(where: str, cause: str) -> ProblemFormatError:
    """Return the error about a record that is not a trace.

    Args:
        where: Place of the record, as for ``messages_of``.
        cause: The reason why the record is not a trace.
    """
    return ProblemFormatError(
        f'{where} is not a record with "messages", each of which has "role" and "content": {cause}. '
        "`rstar2 traces` makes traces of problems."
    )


def _fault(record: Mapping[str, Any]) -> str:
    """Describe why a record is not a trace; empty if its form is right."""
    if "messages" not in record:
        return "it does not contain 'messages'"
    messages = record["messages"]
    if isinstance(messages, str) or not isinstance(messages, Iterable):
        return f"'messages' must be a list, not {str(messages)[:60]!r}"
    for number, message in enumerate(messages, start=1):
        if not isinstance(message, Mapping):
            return f"message {number} must be an object, not {str(message)[:60]!r}"
        if missing := [name for name in ("role", "content") if name not in message]:
            return f"message {number} does not contain {missing[0]!r}"
    return ""


def no_traces() -> ConfigurationError:
    """Return the error about a file without traces."""
    return ConfigurationError(
        "The file of traces is empty, so there is nothing to train on: make traces with `rstar2 traces`."
    )


def check_traces(traces: Sequence[Mapping[str, Any]]) -> None:
    """Raise an error if there are no traces, or if a record is not a trace.

    Raises:
        ConfigurationError: ``traces`` is empty.
        ProblemFormatError: A record is not a trace; the message gives its number.
    """
    if not traces:
        raise no_traces()
    for number, record in enumerate(traces, start=1):
        messages_of(record, f"Trace {number}")
