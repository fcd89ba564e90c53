"""``GrowingRecords``: the records of a small append-only file (metrics, events) in memory; reads only new lines."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from rstar2_env.core.errors import RecordFormatError
from rstar2_env.view.index.episode_columns import parse_line
from rstar2_env.view.index.line_batches import read_batches
from rstar2_env.view.index.line_files import file_state, fingerprints_of

MOST_RECORDS = 200_000


class GrowingRecords:
    """The records of an append-only file; thread-safe.

    Args:
        path: The file; it may be missing.
        run: The run that contains the file.

    Attributes:
        notes: Notes on unreadable content.
        changes: Counter that grows with every change of the records.
    """

    def __init__(self, path: Path, run: Path) -> None:
        self._path, self._run = path, run
        self._lock = threading.Lock()
        self.changes = 0
        self._forget()

    def _forget(self) -> None:
        self.changes += 1
        self._records: list[dict[str, Any]] = []
        self._state: tuple[int, int, int] | None = None
        self._offset, self._lines, self._prints = 0, 0, (b"", b"")
        self.notes: list[str] = []

    def read(self) -> list[dict[str, Any]]:
        """Read new lines, and return all records of the file."""
        with self._lock:
            try:
                state = file_state(self._path, self._run)
                if state != self._state:
                    if self._state is not None and not self._is_same(*state[:2]):
                        self._forget()
                    self._read_new()
                    self._state = state
            except (FileNotFoundError, NotADirectoryError):
                if self._records or self._state is not None:
                    self._forget()
            except OSError as error:
                self._forget()
                self.notes = [f"The file {self._path.name} cannot be read: {error.strerror or error}."]
            return list(self._records)

    def _is_same(self, inode: int, size: int) -> bool:
        known = self._state
        return (
            known is not None
            and known[0] == inode
            and size >= self._offset
            and fingerprints_of(self._path, self._offset) == self._prints
        )

    def _read_new(self) -> None:
        self.changes += 1
        for piece in read_batches(self._path, self._offset):
            for _, line in piece.lines:
                self._lines += 1
                if line is None or line.strip():
                    self._add(line)
            if piece.after is not None:
                self._offset = piece.after
        self._prints = fingerprints_of(self._path, self._offset)

    def _add(self, line: bytes | None) -> None:
        try:
            if line is None:
                raise RecordFormatError("the line exceeds the length limit")
            if len(self._records) < MOST_RECORDS:
                self._records.append(parse_line(line))
        except RecordFormatError as error:
            if len(self.notes) < 20:
                self.notes.append(f"Line {self._lines} of {self._path.name} was skipped: {error}.")
