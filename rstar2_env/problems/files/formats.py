"""Reads problem files of every format: JSONL, JSON, CSV, TSV, Parquet.

Covered: the format by suffix or by name, renamed columns, filters, duplicate questions and ids. Not covered: files
larger than memory (see ``stream``), folders and the Hugging Face Hub (see ``hub``).
"""

from __future__ import annotations

import csv
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeAlias

from rstar2_env.core.errors import MissingExtraError, ProblemFormatError
from rstar2_env.core.options.declare import Rule, check_option
from rstar2_env.problems.files.columns import Columns
from rstar2_env.problems.files.jsonl import exact_answer, has_number, jsonl_rows, or_fault, parse_json, readable
from rstar2_env.problems.filters import Condition
from rstar2_env.problems.problem import Problem
from rstar2_env.problems.records import as_problem

NumberedRecords: TypeAlias = Iterator[tuple[str, int, Any]]
"""For each record its place (for error messages), its number (for its default id), and the record or its error."""

MOST_FAULTS = 10
"""Number of invalid records after which reading ends; the error message lists them."""

_SUFFIXES = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
}
_LONGEST_FIELD = 1 << 28
_csv_limit = threading.Lock()


@dataclass(frozen=True, slots=True)
class Reading:
    """Options for converting the records of a source to problems.

    Attributes:
        columns: Maps the columns of records to fields of a problem.
        where: Conditions that a problem must meet.
        unique: Leave out a problem whose question occurred before (ignoring white space).
        skip_incomplete: Leave out a record without a question or an answer, instead of raising an error.
    """

    columns: Columns = field(default_factory=Columns)
    where: tuple[Condition, ...] = ()
    unique: bool = False
    skip_incomplete: bool = False

    def takes(self, problem: Problem, questions: set[int]) -> bool:
        """Whether a problem meets every condition and, with ``unique``, has a new question.

        Args:
            problem: The problem.
            questions: Hashes of the questions so far; with ``unique``, the problem's question is added.
        """
        if not all(condition(problem) for condition in self.where):
            return False
        if not self.unique:
            return True
        before = len(questions)
        questions.add(hash_of(" ".join(problem.question.split())))
        return len(questions) > before

    def passes_over(self, record: Any) -> bool:
        """Whether the record is skipped because it lacks a question or an answer (``skip_incomplete``)."""
        if not self.skip_incomplete or not isinstance(record, Mapping):
            return False
        texts = [record.get("question"), record.get("answer")]
        return any(text is None or (isinstance(text, str) and not text.strip()) for text in texts)


def format_of(path: Path, name: str | None = None) -> str:
    """Return the format of a file: the named format, else the format of its suffix, else JSONL.

    Raises:
        ConfigurationError: There is no format with this name.
    """
    check_option("format", name, str | None, Rule(choices=(*READERS, None)))
    return name or _SUFFIXES.get(path.suffix.lower(), "jsonl")


def read_file(path: Path, reading: Reading, *, format: str | None = None) -> list[Problem]:
    """Read every problem of a file.

    A problem without an ``id`` gets ``<stem of the file>-<number of its line or row>``; one without a ``source`` gets
    the file's name.

    Args:
        path: The file.
        reading: Options for converting records to problems.
        format: Name of the format; ``None`` takes it from the suffix.

    Raises:
        ConfigurationError: The file cannot be read, or there is no such format.
        ProblemFormatError: A record is not a problem, two have the same id, or no problem is left. The message names
            the file, the line or row (counted from 1) and the field.
        MissingExtraError: The format needs a package that is not installed.
    """
    rows = READERS[format_of(path, format)](path, reading.columns)
    return collect(rows, reading, str(path), stem=path.stem, source=path.name)


def collect(
    rows: Iterable[tuple[str, int, Any]], reading: Reading, what: str, *, stem: str, source: str
) -> list[Problem]:
    """Convert rows to problems.

    Args:
        rows: For each record its place ("file.jsonl:7"), its number, and the record itself or its error.
        reading: Options for converting records to problems.
        what: Names the source in error messages.
        stem: Prefix of the id that a problem without an id gets.
        source: ``Problem.source`` of a problem whose record names no source.

    Raises:
        ProblemFormatError: See ``read_file``.
    """
    problems: list[Problem] = []
    places: dict[str, int] = {}
    questions: set[int] = set()
    faults: list[ProblemFormatError] = []
    seen = 0
    for place, number, record in rows:
        seen += 1
        if reading.passes_over(record):
            continue
        try:
            if isinstance(record, ProblemFormatError):
                raise record
            problem = as_problem(record, where=place, default_id=f"{stem}-{number}", default_source=source)
            first = places.setdefault(problem.id, number)
            if first != number:
                raise ProblemFormatError(
                    f"{place}: the id {problem.id!r} is already used in line {first}: give each problem its own id."
                )
        except ProblemFormatError as error:
            faults.append(error)
            if len(faults) == MOST_FAULTS:
                break
            continue
        if reading.takes(problem, questions):
            problems.append(problem)
    if faults:
        raise _together(what, faults)
    if not problems:
        raise empty(what, seen)
    return problems


def _together(what: str, faults: list[ProblemFormatError]) -> ProblemFormatError:
    """Combine the errors of all invalid records of the file ``what`` into one error."""
    if len(faults) == 1:
        return faults[0]
    end = ["and perhaps more: the rest of the file was not read."] if len(faults) == MOST_FAULTS else []
    lines = "".join(f"\n  {line}" for line in [*map(str, faults), *end])
    return ProblemFormatError(f"{len(faults)} records of {what} are not valid problems:{lines}")


def empty(what: str, seen: int) -> ProblemFormatError:
    """Return the error for a source without a usable record.

    Args:
        what: Names the source in the message.
        seen: Number of records that were read from it.
    """
    if seen:
        return ProblemFormatError(
            f"None of the {seen} records of {what} is left: each lacks a question or an answer, or does "
            "not meet every condition."
        )
    return ProblemFormatError(
        f"{what} does not contain any problems: expected one record for each problem, with question and answer."
    )


def hash_of(text: str) -> int:
    """Return a 64-bit hash of a text, the same in every process."""
    # The largest value is not used, so that hash + 1, where a search for a hash ends, does not overflow.
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return min(int.from_bytes(digest, "big"), (1 << 64) - 2)


def json_rows(path: Path, columns: Columns) -> NumberedRecords:
    """Records of a JSON file: an array, or an object whose ``data`` is an array."""
    try:
        with readable(path):
            text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ProblemFormatError(
            f"{path}: the file must be UTF-8, but the byte at position {error.start} is not valid UTF-8."
        ) from error
    records = _array(parse_json(text, str(path), "a JSON array"), path)
    exact: list[Any] | None = None
    for number, record in enumerate(records, 1):
        place = f"{path}[{number}]"
        mapped = or_fault(lambda: columns(record, place))  # noqa: B023  # called at once
        if has_number(mapped):
            exact = exact or _array(parse_json(text, str(path), "a JSON array", exact=True), path)
            mapped = {**mapped, "answer": exact_answer(columns(exact[number - 1], place))}
        yield place, number, mapped


def _array(value: Any, path: Path) -> list[Any]:
    if isinstance(value, Mapping) and isinstance(value.get("data"), list):
        value = value["data"]
    if not isinstance(value, list):
        raise ProblemFormatError(
            f'{path}: expected a JSON array of problems, or {{"data": [...]}}, got {type(value).__name__}. A file with '
            "one object per line is JSONL: name it .jsonl, or pass format='jsonl'."
        )
    return value


def separated_rows(path: Path, columns: Columns, *, delimiter: str) -> NumberedRecords:
    """Records of a file with values separated by ``delimiter``; its first line names the columns.

    Empty cells are skipped.
    """
    try:
        with readable(path), path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file, delimiter=delimiter, strict=True)
            number = 0
            while True:
                with _csv_limit:  # the limit is global, not the reader's; some solutions exceed its 128 KiB
                    former = csv.field_size_limit(_LONGEST_FIELD)
                    try:
                        row = next(rows, None)
                    finally:
                        csv.field_size_limit(former)
                if row is None:
                    return
                number += 1
                place = f"{path}:{rows.line_num}"
                if None in row:
                    there = len(rows.fieldnames or ())
                    fault = f"{place}: the line has more cells than the {there} of the first line."
                    yield place, number, ProblemFormatError(fault)
                    continue
                cells = {name: value for name, value in row.items() if value}
                yield place, number, or_fault(lambda: columns(cells, place))  # noqa: B023  # called at once
    except UnicodeDecodeError as error:
        raise ProblemFormatError(
            f"{path}: the file must be UTF-8, but contains invalid bytes: {error.reason}."
        ) from error
    except csv.Error as error:
        raise ProblemFormatError(
            f"{path}:{rows.line_num}: cannot be read as columns separated by {delimiter!r}: {error}."
        ) from error


def parquet_rows(path: Path, columns: Columns) -> NumberedRecords:
    """Records of a Parquet file, read in batches."""
    try:
        import pyarrow  # type: ignore[import-untyped]  # pyarrow has no stubs
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError("train", f"Reading {path}") from error
    try:
        with readable(path), parquet.ParquetFile(path) as file:
            names = None
            if columns.keep is not None:
                wanted = set(columns.top_level())
                names = [name for name in file.schema_arrow.names if name in wanted]
            number = 0
            for batch in file.iter_batches(columns=names):
                for record in batch.to_pylist():
                    number += 1
                    place = f"{path}:{number}"
                    yield place, number, or_fault(lambda: columns(record, place))  # noqa: B023  # called at once
    except pyarrow.ArrowException as error:
        raise ProblemFormatError(f"The file {path} cannot be read as Parquet: {error}.") from error


READERS: Mapping[str, Callable[[Path, Columns], NumberedRecords]] = {
    "jsonl": jsonl_rows,
    "json": json_rows,
    "csv": partial(separated_rows, delimiter=","),
    "tsv": partial(separated_rows, delimiter="\t"),
    "parquet": parquet_rows,
}
"""The reader of each format, by the name of the format."""
