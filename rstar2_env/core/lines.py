"""Files of JSON lines that a long run appends to, and resumes after it was interrupted.

Covered: refusing to overwrite, keeping the complete lines of a truncated file, flushing every line. Not covered:
what a line holds, and whether a file belongs to the run that resumes it (``rstar2_env.evaluation.log``,
``rstar2_env.traces.file``).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

from rstar2_env.core.errors import ConfigurationError


def refuse_existing(path: Path, *, resume: bool, overwrite: bool) -> None:
    """Reject an existing file, unless it is to be resumed or replaced.

    Args:
        path: The file.
        resume: Whether it may be resumed.
        overwrite: Whether it may be replaced.

    Raises:
        ConfigurationError: It exists, and neither was requested.
    """
    if path.exists() and not resume and not overwrite:
        raise ConfigurationError(
            f"{path} exists already: choose another file, replace it with overwrite, or go on where it ends.",
            option="resume",
        )


def read_lines(path: Path, what: str) -> Iterator[tuple[int, str, Any]]:
    """Number (from 1), text and record of each line; a truncated last line is skipped.

    Args:
        path: The file.
        what: What a line should be, for the message ("an episode of an evaluation").

    Raises:
        ConfigurationError: A line is not JSON, or the file cannot be read.
    """
    try:
        lines = path.read_bytes().decode("utf-8", "replace").split("\n")
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror or error}.") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            if number == len(lines):
                return  # Cut short when the run was killed: no newline follows it.
            raise ConfigurationError(f"{path}:{number} is not {what} ({error!r}); it cannot be resumed.") from error
        yield number, line, record


def begin_lines(path: Path, kept: Iterable[str]) -> TextIO:
    """Open a file for appending lines, after those that are kept; its folder is created.

    Args:
        path: The file.
        kept: Lines that it begins with, each with its newline.

    Raises:
        ConfigurationError: It cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Through a second file, so that a crash while rewriting loses nothing.
        beside = path.with_name(path.name + ".part")
        beside.write_text("".join(kept), "utf-8")
        beside.replace(path)
        # A lone surrogate has no UTF-8; escaped by a backslash it is what JSON writes for it.
        return path.open("a", encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written: {error.strerror or error}.") from error


def add_line(file: TextIO, record: Mapping[str, Any]) -> None:
    """Add a record; the operating system has it when this returns."""
    file.write(json.dumps(record, ensure_ascii=False) + "\n")
    file.flush()


def difference(there: Any, here: Mapping[str, Any]) -> str:
    """How the run described in a file differs from this one; "" when it does not."""
    if not isinstance(there, Mapping):
        return "it does not describe its run"
    names = [name for name in {**there, **here} if there.get(name) != here.get(name)]
    return "; ".join(f"{name} was {there.get(name)!r} and is {here.get(name)!r}" for name in names)


def plain(run: Mapping[str, Any]) -> dict[str, Any]:
    """A run's description after a round trip through JSON; values that JSON cannot hold become their type's name."""
    found: dict[str, Any] = json.loads(json.dumps(run, default=lambda value: type(value).__qualname__))
    return found
