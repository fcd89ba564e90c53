"""Reads problems from a JSONL file: one JSON object a line.

Covered: UTF-8 with or without a byte order mark, blank lines, exact numbers, errors that name file, line and field. Not
covered: compressed files, other formats.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rstar2_env.errors import ConfigurationError, ProblemFormatError
from rstar2_env.problems.problem import Problem
from rstar2_env.problems.records import as_problem, number_text


def read_jsonl(path: Path) -> list[Problem]:
    """Read every problem of a file.

    A problem without an ``id`` is called ``<stem of the file>-<line number>``; one without a ``source`` has the file's
    name there.

    Args:
        path: The file.

    Raises:
        ConfigurationError: The file cannot be read.
        ProblemFormatError: A line is not a problem, two lines have the same id, or the file holds no problem. The
            message names the file, the line (counted from 1) and the field.
    """
    problems: list[Problem] = []
    lines: dict[str, int] = {}
    for number, record in _records(path):
        where = f"{path}:{number}"
        problem = as_problem(record, where=where, default_id=f"{path.stem}-{number}", default_source=path.name)
        first = lines.setdefault(problem.id, number)
        if first != number:
            raise ProblemFormatError(
                f"{where}: field 'id': {problem.id!r} is the id of line {first} already; ids must be unique."
            )
        problems.append(problem)
    if not problems:
        raise ProblemFormatError(f"{path} holds no problem: expected one JSON object a line.")
    return problems


def _records(path: Path) -> Iterator[tuple[int, Any]]:
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if number == 1:
                    line = line.removeprefix(b"\xef\xbb\xbf")
                if line.strip():
                    yield number, _parse(line, f"{path}:{number}")
    except OSError as error:
        raise ConfigurationError(f"The problem file {path} cannot be read: {error.strerror or error}.") from error


def _parse(line: bytes, where: str) -> Any:
    try:
        text = line.decode("utf-8").strip()
    except UnicodeDecodeError as error:
        raise ProblemFormatError(f"{where}: expected UTF-8, got the byte {line[error.start]:#04x}.") from error
    try:
        record = json.loads(text, parse_constant=_refuse)
        if isinstance(record, dict) and isinstance(record.get("answer"), (int, float)):
            # A float would lose digits that the file has: read the number again as it is written.
            exact = json.loads(text, parse_float=str, parse_int=str)["answer"]
            if isinstance(exact, str):
                record["answer"] = number_text(exact)
    except json.JSONDecodeError as error:
        raise ProblemFormatError(
            f"{where}: expected a JSON object, got text that is not JSON: {error.msg} at column {error.pos + 1}."
        ) from error
    except (ValueError, RecursionError) as error:
        raise ProblemFormatError(f"{where}: expected a JSON object, got one that cannot be read: {error}.") from error
    return record


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not a number in JSON")
