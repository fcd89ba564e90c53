"""Files of JSON lines that a long run appends to, and resumes after an interruption.

Covered: a lock that admits one writer, a truncated last line, a flush after every line. Not covered: whether the file
may be written (``outputs``), the content of a line, and whether a file belongs to the run that resumes it
(``rstar2_env.evaluation.play.log``, ``rstar2_env.traces.file``).
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, TextIO

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.files.full_disk import naming_full_disk
from rstar2_env.core.files.json_values import jsonable
from rstar2_env.core.files.outputs import replacing
from rstar2_env.core.secret import hidden, redacted


def read_lines(path: Path, what: str) -> Iterator[tuple[int, str, Any]]:
    """Yield number (from 1), text and parsed JSON of each line of a file; a last line without a newline is skipped.

    Args:
        path: The file.
        what: Description of a valid line, for the error message ("an episode of an evaluation").

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
                    return  # The run was killed while writing it; it may be valid JSON by chance.
                try:
                    record = json.loads(line)
                except (ValueError, RecursionError) as error:
                    raise ConfigurationError(
                        f"Line {number} of {path} is not {what} ({error}), so the file cannot be "
                        "resumed: choose another file."
                    ) from error
                yield number, line.rstrip("\n"), record
    except OSError as error:
        raise ConfigurationError(f"The file {path} cannot be read: {error.strerror or error}.") from error


def begin_lines(path: Path, kept: Iterable[str]) -> TextIO:
    """Open a file for appending, after writing the lines to keep; its folder is created if it does not exist.

    Args:
        path: The file.
        kept: Lines that the file begins with, each with its newline; the iterator may read them from the file itself.

    Raises:
        ConfigurationError: The file cannot be written.
    """
    try:
        with replacing(path) as partial, partial.open("w", encoding="utf-8") as file:
            file.writelines(kept)
        # A lone surrogate has no UTF-8 form; with a backslash it is escaped as in JSON.
        with naming_full_disk(path):
            return path.open("a", encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise ConfigurationError(f"The file {path} cannot be written: {error.strerror or error}.") from error


def lock_file(path: Path) -> IO[bytes]:
    """Lock a file against writing by other processes, until ``unlock_file`` or the end of this process.

    The lock is on a second file in the same folder, since the file itself may be replaced. On a file system without
    locks, this does nothing.

    Args:
        path: The file.

    Raises:
        ConfigurationError: Another process has the lock, or the file cannot be written.
    """
    try:
        with naming_full_disk(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = path.with_name(f".{path.name}.lock").open("ab")
    except OSError as error:
        raise ConfigurationError(f"The file {path} cannot be written: {error.strerror or error}.") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        lock.close()
        raise ConfigurationError(
            f"Another process is writing the file {path}: wait until it ends, or choose another file."
        ) from error
    except OSError:
        pass
    return lock


def unlock_file(lock: IO[bytes]) -> None:
    """Release the lock that ``lock_file`` acquired."""
    Path(lock.name).unlink(missing_ok=True)
    lock.close()


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a JSON object to a file atomically.

    Args:
        path: The file; its folder is created.
        value: The object; a value that JSON cannot represent becomes the name of its type.
    """
    with replacing(path) as partial:
        partial.write_text(json.dumps(jsonable(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n", "utf-8")


def add_line(file: TextIO, record: Mapping[str, Any]) -> None:
    """Append a record as a line of JSON, and flush the line to the operating system."""
    with naming_full_disk(file.name):
        file.write(hidden(json.dumps(record, ensure_ascii=False)) + "\n")
        file.flush()


def difference(there: Any, here: Mapping[str, Any]) -> str:
    """Describe how the settings of a recorded run (``there``) differ from those of this run (``here``); "" if equal."""
    if not isinstance(there, Mapping):
        return "it does not describe its run"
    names = [name for name in {**there, **here} if there.get(name) != here.get(name)]
    return "; ".join(f"{name} was {there.get(name)!r} and is {here.get(name)!r}" for name in names)


def plain(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run's description as JSON values; a value that JSON cannot hold is replaced by the name of its type.

    Secrets are replaced by ``***``.
    """
    found: dict[str, Any] = redacted(json.loads(json.dumps(run, default=lambda value: type(value).__qualname__)))
    return found
