r"""Reads the fields of a problem from records whose columns have other names, or contain additional text.

A column is written ``PATH[|EXTRACTION...]``. The path descends into objects and lists by dots (``solution.answer``,
``prompt.0.content``). An extraction takes a part of the text: ``after:TEXT`` (the text after the last ``TEXT``, as in
GSM8K's ``after:####``), ``before:TEXT`` (the text before the last ``TEXT``), ``boxed`` (the content of the last
``\boxed{}``), ``regex:PATTERN`` (the first group of the last match, or the whole match if the pattern has no group).
Since a pattern may contain ``|``, ``regex`` must be the last extraction. Not covered: computing a field from several
columns.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rstar2_env.core.errors import ConfigurationError, ProblemFormatError
from rstar2_env.problems.records import FIELDS

_KINDS = ("after", "before", "boxed", "regex")


@dataclass(frozen=True, slots=True)
class Column:
    """The place of a problem's field in a record: a path, and extractions from the text at this path.

    Attributes:
        written: The text that the user wrote.
        path: Keys and indices, outermost first.
        extractions: Kind and argument of each extraction, in the order in which they are applied.
    """

    written: str
    path: tuple[str, ...]
    extractions: tuple[tuple[str, str], ...] = ()

    def read(self, record: Mapping[str, Any], where: str, field: str) -> Any:
        """Read the field from one record.

        Args:
            record: The record.
            where: Names the record in error messages ("file.jsonl:7").
            field: Names the field in error messages.

        Raises:
            ProblemFormatError: The record has no such column, or the extraction finds nothing.
        """
        value: Any = record
        if self.written in record:
            # A column's name may itself contain dots or bars.
            return record[self.written]
        for depth, key in enumerate(self.path):
            if isinstance(value, Mapping) and key in value:
                value = value[key]
            elif isinstance(value, Sequence) and not isinstance(value, str) and _is_index(key, value):
                value = value[int(key)]
            else:
                reached = ".".join(self.path[: depth + 1])
                raise ProblemFormatError(
                    f"{where}: the field {field!r} is read from {self.written!r}, but {reached} does not "
                    f"exist; {_there(value)}."
                )
        for kind, argument in self.extractions:
            part = _extract(str(value), kind, argument)
            if part is None:
                raise ProblemFormatError(
                    f"{where}: the field {field!r} is read from {self.written!r}, but "
                    f"{kind}{':' if argument else ''}{argument} finds nothing in {str(value)[-80:]!r}."
                )
            value = part
        return value


def parse_column(written: str) -> Column:
    """Parse the notation of a column, ``PATH[|EXTRACTION...]``, such as ``answer|after:####``.

    Raises:
        ConfigurationError: The column has no path, or an unknown extraction.
    """
    if not isinstance(written, str) or not written.partition("|")[0].strip():
        raise ConfigurationError(
            f"A column must have the form PATH[|EXTRACTION...], such as 'answer|after:####'; got {written!r}."
        )
    path, _, rest = written.partition("|")
    extractions: list[tuple[str, str]] = []
    while rest:
        kind, _, argument = rest.partition(":")
        if kind.strip() == "regex":
            extractions.append(("regex", _checked_pattern(argument)))
            break
        step, _, rest = rest.partition("|")
        kind, colon, argument = step.partition(":")
        if kind.strip() not in _KINDS or (kind.strip() == "boxed") == bool(colon) or (colon and not argument):
            raise ConfigurationError(
                f"The column {written!r} has the invalid extraction {step!r}; expected after:TEXT, before:TEXT, "
                "boxed or regex:PATTERN."
            )
        extractions.append((kind.strip(), argument))
    return Column(written, tuple(path.strip().split(".")), tuple(extractions))


@dataclass(frozen=True, slots=True)
class Columns:
    """Converts records with other column names to records with the field names of a problem.

    Attributes:
        fields: Each field of a problem (``question``, ``answer``, ``id``, ``source``, or a name of ``meta``) and its
            column.
        keep: Columns that go to ``meta``; ``None`` means every column, except those whose unchanged value is a field.
    """

    fields: tuple[tuple[str, Column], ...] = ()
    keep: tuple[str, ...] | None = None

    def __call__(self, record: Any, where: str) -> Any:
        """Convert one record; a value that is not a mapping is returned unchanged, and ``as_problem`` rejects it.

        Raises:
            ProblemFormatError: The record lacks a column.
        """
        if not isinstance(record, Mapping) or (not self.fields and self.keep is None):
            return record
        mapped = {field: column.read(record, where, field) for field, column in self.fields}
        taken = {column.path[0] for _, column in self.fields if len(column.path) == 1 and not column.extractions}
        for name, value in record.items():
            if name in mapped or name in taken:
                continue
            if self.keep is None or name in self.keep or name in FIELDS:
                mapped[name] = value
        return mapped

    def top_level(self) -> list[str]:
        """Return the names of the columns to read; valid only if ``keep`` is set, because otherwise all are read."""
        names = {name for _, column in self.fields for name in (column.path[0], column.written)}
        return sorted(names | set(self.keep or ()) | set(FIELDS))


def make_columns(columns: Mapping[str, str] | None, keep: Sequence[str] | str | None = None) -> Columns:
    """Parse a mapping from fields of a problem to columns.

    Args:
        columns: The column of each field; ``None`` means that the columns have the names of the fields.
        keep: As in ``Columns``, or names separated by ``;``.

    Raises:
        ConfigurationError: ``columns`` is not a mapping from names to columns.
    """
    if columns is not None and not isinstance(columns, Mapping):
        raise ConfigurationError(
            f'`columns` must map fields to columns, such as {{"question": "problem"}}; got {columns!r}.'
        )
    if isinstance(keep, str):
        keep = [name.strip() for name in keep.split(";") if name.strip()]
    fields = tuple((str(field), parse_column(written)) for field, written in (columns or {}).items())
    return Columns(fields, None if keep is None else tuple(keep))


def _extract(text: str, kind: str, argument: str) -> str | None:
    if kind == "boxed":
        from rstar2_env.verification import last_boxed

        return last_boxed(text)
    if kind == "regex":
        matches = list(re.finditer(argument, text))
        return matches[-1][1 if matches[-1].re.groups else 0] if matches else None
    before, sign, after = text.rpartition(argument)
    if not sign:
        return None
    return (after if kind == "after" else before).strip()


def _checked_pattern(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ConfigurationError(f"{pattern!r} is not a regular expression: {error}.") from error
    if not pattern:
        raise ConfigurationError("The extraction 'regex:' needs a pattern after the colon.")
    return pattern


def _is_index(key: str, values: Sequence[Any]) -> bool:
    return key.isascii() and key.isdecimal() and int(key) < len(values)


def _there(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"there are {', '.join(map(repr, value)) or 'no fields'}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"there is a list of {len(value)}"
    return f"there is {type(value).__name__} {str(value)[:40]!r}"
