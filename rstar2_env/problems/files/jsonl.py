"""Reads records from a JSONL file, with one JSON object per line.

Covered: UTF-8 with or without a byte order mark, blank lines, exact numbers, errors that name file, line and field. Not
covered: compressed files, other formats (see ``formats``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rstar2_env.core.errors import ConfigurationError, ProblemFormatError
from rstar2_env.problems.files.columns import Columns
from rstar2_env.problems.records import number_text


def jsonl_rows(path: Path, columns: Columns) -> Iterator[tuple[str, int, Any]]:
    """Every record of a file, with its place ("file.jsonl:7") and its line number, counted from 1.

    For a line that is not JSON, or lacks a column, the error is yielded in place of the record, so that the lines after
    it can still be read.

    Raises:
        ConfigurationError: The file cannot be read.
    """
    with readable(path), path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if line.strip():
                place = f"{path}:{number}"
                yield place, number, or_fault(lambda: parse_line(line, columns, place))  # noqa: B023  # called at once


def read_objects(path: Path) -> Iterator[dict[str, Any]]:
    """Every record of a file of JSON objects, one per line.

    Raises:
        ConfigurationError: The file cannot be read.
        ProblemFormatError: A line is not a JSON object; the message names the line.
    """
    for _, record in placed_objects(path):
        yield record


def placed_objects(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every record of a file of JSON objects, one per line, with its place ("file.jsonl:7").

    Raises:
        ConfigurationError: The file cannot be read.
        ProblemFormatError: A line is not a JSON object; the message names the line.
    """
    for place, _, record in jsonl_rows(path, Columns()):
        if isinstance(record, ProblemFormatError):
            raise record
        if not isinstance(record, dict):
            raise ProblemFormatError(f"{place}: expected a JSON object, got {str(record)[:60]!r}.")
        yield place, record


def or_fault(read: Callable[[], Any]) -> Any:
    """Return the result of ``read``, or the ``ProblemFormatError`` that it raised."""
    try:
        return read()
    except ProblemFormatError as error:
        return error


def parse_line(line: bytes, columns: Columns, where: str) -> Any:
    """Return the record of one line, with columns renamed to the fields of a problem.

    Args:
        line: The line.
        columns: Maps the columns of records to fields of a problem.
        where: Names the line in error messages ("file.jsonl:7").

    Raises:
        ProblemFormatError: The line is not JSON, or lacks a column.
    """
    try:
        text = line.decode("utf-8").strip()
    except UnicodeDecodeError as error:
        raise ProblemFormatError(
            f"{where}: the file must be UTF-8, but contains the byte {line[error.start]:#04x}."
        ) from error
    record = columns(parse_json(text, where, "a JSON object"), where)
    if has_number(record):
        record["answer"] = exact_answer(columns(parse_json(text, where, "a JSON object", exact=True), where))
    return record


def parse_json(text: str, where: str, expected: str, *, exact: bool = False) -> Any:
    """Parse JSON.

    Args:
        text: The text.
        where: Names the text in error messages.
        expected: Describes the expected value in error messages, such as "a JSON object".
        exact: Keep numbers as strings, as they are written.

    Raises:
        ProblemFormatError: The text is not JSON.
    """
    try:
        if exact:
            return json.loads(text, parse_float=str, parse_int=str)
        return json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise ProblemFormatError(
            f"{where}: expected {expected}, but the text is not valid JSON: "
            f"{error.msg.removesuffix(' at')} at "
            f"{f'line {error.lineno}, ' if error.lineno > 1 else ''}column {error.colno}."
        ) from error
    except (ValueError, RecursionError) as error:
        raise ProblemFormatError(f"{where}: expected {expected}, but the JSON cannot be read: {error}.") from error


def has_number(record: Any) -> bool:
    """Whether the record's answer is a number, so that parsing may have lost digits."""
    return isinstance(record, dict) and isinstance(record.get("answer"), (int, float))


def exact_answer(record: Any) -> Any:
    """Return the answer of a record that ``parse_json`` parsed with ``exact``; a number is written without exponent."""
    answer = record["answer"]
    return number_text(answer) if isinstance(answer, str) else answer


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Replace an ``OSError`` raised in the ``with`` block by a ``ConfigurationError`` that names the file."""
    try:
        yield
    except OSError as error:
        raise ConfigurationError(f"The file {path} cannot be read: {error.strerror or error}.") from error


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not a number in JSON")
