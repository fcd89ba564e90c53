"""Reads files of tool-use traces, as ``rstar2 traces`` writes them, and checks the form of each trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rstar2_env.core.episode import Message
from rstar2_env.core.errors import ConfigurationError, ProblemFormatError
from rstar2_env.problems.files.jsonl import read_objects


def read_traces(path: str | Path) -> list[dict[str, Any]]:
    """Read a file that ``rstar2 traces`` wrote.

    Raises:
        ConfigurationError: The file cannot be read.
        ProblemFormatError: A line is not a JSON object; the message names the line.
    """
    return list(read_objects(Path(path)))


def messages_of(record: Mapping[str, Any], number: int) -> list[Message]:
    """Return the messages of a trace; ``number`` is its place in the file, counted from 1.

    Raises:
        ProblemFormatError: The record is not a trace; the message gives its number.
    """
    try:
        return [Message(message["role"], message["content"]) for message in record["messages"]]
    except (KeyError, TypeError) as error:
        raise not_a_trace(number, error) from error


def not_a_trace(number: int, error: Exception) -> ProblemFormatError:
    """Return the error about a record that is not a trace."""
    cause = f"it does not contain {error}" if isinstance(error, KeyError) else str(error)
    return ProblemFormatError(
        f'Trace {number} is not a record with "messages", each of which has "role" and "content": {cause}. '
        "`rstar2 traces` makes traces of problems."
    )


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
        messages_of(record, number)
