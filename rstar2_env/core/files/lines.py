"""Files of JSON lines that a long run appends to, and resumes after it was interrupted.

Covered: refusing to overwrite, one writer at a time, keeping the complete lines of a truncated file, flushing every
line. Not covered:
what a line holds, and whether a file belongs to the run that resumes it (``rstar2_env.evaluation.play.log``,
``rstar2_env.traces.file``).
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, TextIO

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.files.json_values import jsonable


def refuse_existing(path: Path, *, resume: bool | None, overwrite: bool) -> None:
    """Reject an existing file, unless it is to be resumed or replaced.

    Args:
        path: The file.
        resume: Whether it may be resumed; ``None`` where what it holds cannot be.
        overwrite: Whether it may be replaced.

    Raises:
        ConfigurationError: It exists, and neither was requested.
    """
    if path.exists() and not resume and not overwrite:
        if resume is None:
            raise ConfigurationError(f"{path} exists already: choose another one, or replace it.", option="overwrite")
        raise ConfigurationError(
            f"{path} exists already: choose another one, replace it (--overwrite, overwrite=True), or go on where it "
            "ends.",
            option="resume",
        )


def read_lines(path: Path, what: str) -> Iterator[tuple[int, str, Any]]:
    """Number (from 1), text and record of each line, read one by one; a last line without its newline is skipped.

    Args:
        path: The file.
        what: What a line should be, for the message ("an episode of an evaluation").

    Raises:
        ConfigurationError: A line is not JSON, or the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            for number, data in enumerate(file, 1):
                line = data.decode("utf-8", "replace")
                if not line.strip():
                    continue
                if not line.endswith("\n"):
                    return  # Cut short when the run was killed; it may still be JSON that lacks its end.
                try:
                    record = json.loads(line)
                except ValueError as error:
                    raise ConfigurationError(
                        f"{path}:{number} is not {what} ({error!r}); it cannot be resumed."
                    ) from error
                yield number, line.rstrip("\n"), record
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror or error}.") from error


def begin_lines(path: Path, kept: Iterable[str]) -> TextIO:
    """Open a file for appending lines, after those that are kept; its folder is created.

    Args:
        path: The file.
        kept: Lines that it begins with, each with its newline; they may be read from the file itself meanwhile.

    Raises:
        ConfigurationError: It cannot be written.
    """
    # Through a second file, so that a crash while rewriting loses nothing.
    beside = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with beside.open("w", encoding="utf-8") as file:
                file.writelines(kept)
            beside.replace(path)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
        # A lone surrogate has no UTF-8; escaped by a backslash it is what JSON writes for it.
        return path.open("a", encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written: {error.strerror or error}.") from error


def lock_file(path: Path) -> IO[bytes]:
    """Keep other processes from writing a file until ``unlock_file`` gets what this returns, or this process ends.

    The lock is on a second file beside it, as the file itself may be replaced. Where the file system knows no locks,
    nothing is kept.

    Args:
        path: The file.

    Raises:
        ConfigurationError: Another process has it, or it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = path.with_name(f".{path.name}.lock").open("ab")
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written: {error.strerror or error}.") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        lock.close()
        raise ConfigurationError(f"Another process is writing {path}: wait for it, or choose another file.") from error
    except OSError:
        pass
    return lock


def unlock_file(lock: IO[bytes]) -> None:
    """Let other processes write the file again."""
    Path(lock.name).unlink(missing_ok=True)
    lock.close()


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a file of one JSON object, which appears whole or not at all.

    Args:
        path: The file; its folder must exist.
        value: The object; what JSON cannot hold becomes the name of its type.
    """
    beside = path.with_name(path.name + ".part")
    beside.write_text(json.dumps(jsonable(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n", "utf-8")
    beside.replace(path)


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
