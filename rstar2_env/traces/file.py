"""A file of traces that can be resumed: one JSON line per trace, in the order of the problems.

Covered: the existing content of the file, and a check that it belongs to the resumed run. Not covered: writing traces
(``rstar2_env.traces.writer``), reading them to train (``rstar2_env.trainers``).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self, TextIO

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.files.json_lines import add_line, begin_lines, difference, plain, read_lines
from rstar2_env.core.files.outputs import check_file
from rstar2_env.traces.writer import Trace


class TraceFile:
    """Writes traces to a file; the file is not changed until the ``with`` block is entered.

    Each line has the fields of ``Trace.record()``, and ``run``: the problems, seed and options of the trace.

    A resumed file becomes equal, line by line, to the file of an uninterrupted run. A new file without traces is
    removed at the end of the ``with`` block.

    Args:
        path: The file; its folder is made.
        run: Problems, seed and options of the run, in JSON values. A file with another ``run`` is not resumed.
        resume: Continue the file if it exists.
        overwrite: Replace the file if it exists.

    Attributes:
        records: Existing records of the file, in order.
        next: Index (``Trace.index``) of the first trace that is not yet in the file.

    Raises:
        ConfigurationError: The file exists and neither ``resume`` nor ``overwrite`` is set, or it belongs to another
            run. Entering the ``with`` block also raises this if the file cannot be written.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, run: Mapping[str, Any], resume: bool = False, overwrite: bool = False
    ) -> None:
        self.path = Path(path)
        self.records: list[dict[str, Any]] = []
        self._run = plain(run)
        self._new = not self.path.exists()
        self._file: TextIO | None = None
        check_file(self.path, resume=resume, overwrite=overwrite, lines=True)
        self._kept = self._read() if resume and not self._new else []
        self.next = self.records[-1]["index"] + 1 if self.records else 0

    def write(self, trace: Trace) -> None:
        """Append a trace to the file."""
        record = trace.record()
        if self._file is None:
            raise ConfigurationError(
                f"The file {self.path} is not open: write inside of `with TraceFile(...) as file:`."
            )
        add_line(self._file, {**record, "run": self._run})
        self.records.append(record)

    def __enter__(self) -> Self:
        self._file = begin_lines(self.path, self._kept)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        if self._new and not self.records:
            self.path.unlink(missing_ok=True)

    def _read(self) -> list[str]:
        kept: list[str] = []
        for number, line, record in read_lines(self.path, "a trace"):
            last = self.records[-1]["index"] if self.records else -1
            if not isinstance(record, dict) or not isinstance(record.get("index"), int) or record["index"] <= last:
                raise ConfigurationError(
                    f"Line {number} of {self.path} is not the trace that `rstar2 traces` would write "
                    "there, so the file cannot be resumed: choose another file."
                )
            if other := difference(record.pop("run", None), self._run):
                raise ConfigurationError(
                    f"Line {number} of {self.path} was written with other settings: {other}. Resume with "
                    "the same problems, options and seed, or choose another file."
                )
            self.records.append(record)
            kept.append(line + "\n")
        return kept
