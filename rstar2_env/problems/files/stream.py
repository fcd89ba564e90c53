"""Sources that are not loaded into memory: a JSONL file read by byte offsets, a memory-mapped data set.

Covered: data sets larger than memory. For each problem only a few numbers are kept: its row, its id's hash, and for
JSONL the place of its line. They take 24 bytes, or 48 for JSONL. Every record is read once when the source is created,
so that invalid records are found before training, and again whenever it is requested. Sources are thread-safe and can
be forked and pickled. Not covered: files that change while they are read, which is an error.
"""

from __future__ import annotations

import os
import weakref
from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, overload

import numpy as np

from rstar2_env.core.errors import ProblemFormatError
from rstar2_env.problems.files.columns import Columns
from rstar2_env.problems.files.formats import Reading, empty, hash_of
from rstar2_env.problems.files.jsonl import parse_line, readable
from rstar2_env.problems.problem import Problem
from rstar2_env.problems.records import as_problem
from rstar2_env.problems.source import UnknownProblemError


class Table(Protocol):
    """Protocol of a table whose records can be read by number; it must support pickling."""

    def __len__(self) -> int:
        """Number of records."""
        ...

    def row(self, index: int) -> tuple[str, int, Any]:
        """Return the place (for messages), the number (for a default id) and the fields of record ``index``, from 0."""
        ...

    def rows(self) -> Iterator[tuple[str, int, Any]]:
        """Yield the result of ``row`` for every record, in order; faster than one call of ``row`` for each record."""
        ...


class JsonlTable:
    """The lines of a JSONL file, of which only the offsets are kept in memory.

    Args:
        path: The file.
        columns: Maps the columns of records to fields of a problem.

    Raises:
        ConfigurationError: The file cannot be read.
    """

    def __init__(self, path: Path, columns: Columns) -> None:
        self._path = path
        self._columns = columns
        lines, offsets, lengths = array("q"), array("q"), array("q")
        self._fd = self._open()
        with readable(path), open(self._fd, "rb", closefd=False) as file:
            self._stamp = _stamp(self._fd)
            at = 0
            for number, line in enumerate(file, 1):
                mark = 3 if number == 1 and line.startswith(b"\xef\xbb\xbf") else 0
                if line[mark:].strip():
                    lines.append(number)
                    offsets.append(at + mark)
                    lengths.append(len(line) - mark)
                at += len(line)
        self._lines, self._offsets, self._lengths = lines, offsets, lengths

    def __len__(self) -> int:
        return len(self._lines)

    def row(self, index: int) -> tuple[str, int, Any]:
        """Return the place, the line number and the record of line ``index``; threads may call it at the same time."""
        number = self._lines[index]
        where = f"{self._path}:{number}"
        with readable(self._path):
            if _stamp(self._fd) != self._stamp:
                raise ProblemFormatError(f"The file {self._path} has changed since it was loaded: load it again.")
            line = os.pread(self._fd, self._lengths[index], self._offsets[index])
        return where, number, parse_line(line, self._columns, where)

    def rows(self) -> Iterator[tuple[str, int, Any]]:
        """Yield the result of ``row`` for every line, in order."""
        return map(self.row, range(len(self)))

    def __getstate__(self) -> dict[str, Any]:
        """Pickle without the open file; the unpickled copy opens the file again."""
        return {name: value for name, value in self.__dict__.items() if name != "_fd"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._fd = self._open()

    def _open(self) -> int:
        with readable(self._path):
            fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, fd)
        return fd


class LazySource:
    """Problems that are read when they are requested.

    Args:
        table: The records.
        reading: Options for converting records to problems.
        stem: Prefix of the id that a problem without an id gets.
        name: Name of the source.
        split: Name of the split; "" if there is only one.
        source: ``Problem.source`` of a problem whose record names no source.
        part: Function that returns whether a question belongs to the split; ``None`` takes all questions.

    Attributes:
        name: Name of the source.
        split: Name of the split.

    Raises:
        ProblemFormatError: A record is not a problem, two have the same id, or no problem is left.
    """

    def __init__(
        self,
        table: Table,
        reading: Reading,
        *,
        stem: str,
        name: str,
        split: str,
        source: str,
        part: Callable[[str], bool] | None = None,
    ) -> None:
        self._table, self._stem, self._source = table, stem, source
        self.name, self.split = name, split
        rows, hashes = array("q"), array("Q")
        questions: set[int] = set()
        for row, record in enumerate(table.rows()):
            if reading.passes_over(record[2]):
                continue
            problem = self._problem(*record)
            if (part is not None and not part(problem.question)) or not reading.takes(problem, questions):
                continue
            rows.append(row)
            hashes.append(hash_of(problem.id))
        if not rows:
            raise empty(name, len(table))
        self._rows = rows
        found = np.frombuffer(hashes, dtype=np.uint64)
        self._order = np.argsort(found, kind="stable")
        self._hashes = found[self._order]
        self._refuse_twins()

    @property
    def ids(self) -> Sequence[str]:
        """Every id, in order; each is read when it is requested."""
        return _Ids(self)

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Problem]:
        return (self._read(row) for row in self._rows)

    def __getitem__(self, index: int, /) -> Problem:
        if not 0 <= index < len(self._rows):
            raise IndexError(
                f"{self.name} does not have a problem with the index {index}; its indices are 0 to {len(self) - 1}."
            )
        return self._read(self._rows[index])

    def get(self, problem_id: str) -> Problem:
        """Return the problem with this id.

        Raises:
            UnknownProblemError: The source has no problem with that id.
        """
        wanted = np.uint64(hash_of(problem_id))
        for at in range(*np.searchsorted(self._hashes, [wanted, wanted + np.uint64(1)])):
            problem = self._read(self._rows[int(self._order[at])])
            if problem.id == problem_id:
                return problem
        raise UnknownProblemError(
            f"{self.name} has no problem {problem_id!r}. It has {len(self)} problems, from {self[0].id!r} to "
            f"{self[len(self) - 1].id!r}."
        )

    def sample(self, rng: np.random.Generator) -> Problem:
        """Return one problem, drawn uniformly."""
        return self[int(rng.integers(len(self)))]

    def __deepcopy__(self, memo: dict[int, Any]) -> LazySource:
        """The source itself, since it is immutable."""
        return self

    def __repr__(self) -> str:
        return f"LazySource(name={self.name!r}, split={self.split!r}, problems={len(self)})"

    def _read(self, row: int) -> Problem:
        return self._problem(*self._table.row(row))

    def _problem(self, where: str, number: int, record: Any) -> Problem:
        return as_problem(record, where=where, default_id=f"{self._stem}-{number}", default_source=self._source)

    def _refuse_twins(self) -> None:
        for at in np.flatnonzero(self._hashes[1:] == self._hashes[:-1]):
            first, second = sorted(int(self._rows[int(self._order[at + step])]) for step in (0, 1))
            problem_id = self._read(second).id
            if self._read(first).id == problem_id:
                place, twin = self._table.row(second)[0], self._table.row(first)[1]
                raise ProblemFormatError(
                    f"{place}: the id {problem_id!r} is already used in line {twin}: give each problem its own id."
                )


class _Ids(Sequence[str]):
    def __init__(self, source: LazySource) -> None:
        self._of = source

    def __len__(self) -> int:
        return len(self._of)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self._of[at].id for at in range(*index.indices(len(self)))]
        return self._of[index + len(self) if index < 0 else index].id


def _stamp(fd: int) -> tuple[int, int]:
    status = os.fstat(fd)
    return status.st_mtime_ns, status.st_size
