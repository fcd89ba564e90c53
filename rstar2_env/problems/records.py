"""Converts a record (a JSON object, a dict) to a ``Problem``, with exact errors for invalid ones.

The fields are ``question`` and ``answer``, and optionally ``id`` and ``source``; every other field goes to ``meta``.
"""

from __future__ import annotations

import numbers
import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

from rstar2_env.core.errors import ProblemFormatError
from rstar2_env.problems.problem import Problem

FIELDS = ("id", "question", "answer", "source")

_WORKED = re.compile(r"\n[ \t]*(####[ \t]*[-+$]?\d[\d,.]*%?)\s*\Z")
"""Matches the end of a worked solution in GSM8K's format. A gold answer that ends like this is rejected, because no
short answer would equal it."""
_LARGEST_EXPONENT = 400
"""Largest exponent that is written as digits ("1e3" becomes "1000"); more digits could take gigabytes."""


def as_problem(
    record: Problem | Mapping[str, Any],
    *,
    where: str = "problem",
    default_id: str = "problem",
    default_source: str = "",
) -> Problem:
    """Return the problem that a record describes; a ``Problem`` is returned unchanged.

    Args:
        record: The fields. An ``answer`` that is a number is converted to an exact decimal string.
        where: Names the record in error messages ("file.jsonl:7").
        default_id: The id if the record has none.
        default_source: The source if the record has none.

    Raises:
        ProblemFormatError: A field is missing or has the wrong type; the message names ``where`` and the field.
    """
    if isinstance(record, Problem):
        return record
    if not isinstance(record, Mapping):
        raise ProblemFormatError(f"{where}: expected a JSON object with question and answer, got {_describe(record)}.")
    return Problem(
        id=_identifier(record, where, default_id),
        question=_text(record, "question", where),
        answer=_answer(record, where),
        source=default_source if record.get("source") is None else _text(record, "source", where),
        meta={str(key): value for key, value in record.items() if key not in FIELDS},
    )


def number_text(number: str) -> str:
    """Write a decimal number without exponent, keeping all its digits ("1e3" becomes "1000", "27.0" stays).

    Args:
        number: A number in the notation of JSON or Python.
    """
    try:
        value = Decimal(number)
    except InvalidOperation:
        return number
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int) or abs(value.adjusted()) > _LARGEST_EXPONENT or -exponent > _LARGEST_EXPONENT:
        return number
    return format(value, "f")


def _identifier(record: Mapping[str, Any], where: str, default: str) -> str:
    value = record.get("id")
    if value is None:
        return default
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return str(int(value))
    if not isinstance(value, str) or not value.strip():
        raise _fault(where, "id", "a non-empty string or an integer", value)
    return value


def _text(record: Mapping[str, Any], field: str, where: str) -> str:
    if field not in record:
        raise ProblemFormatError(f"{where}: the field {field!r} is missing; the record has {_keys(record)}.")
    value = record[field]
    if not isinstance(value, str) or not value.strip():
        raise _fault(where, field, "a non-empty string", value)
    return value


def _answer(record: Mapping[str, Any], where: str) -> str:
    value = record.get("answer")
    if isinstance(value, bool) or not isinstance(value, (numbers.Real, Decimal)):
        if isinstance(value, str) or "answer" not in record:
            text = _text(record, "answer", where)
            if worked := _WORKED.search(text):
                raise ProblemFormatError(
                    f"{where}: the field 'answer' must hold only the answer, but it holds a worked "
                    f"solution that ends with {worked[1]!r}, as in GSM8K: write the source as "
                    "FILE:like=gsm8k."
                )
            return text
        raise _fault(where, "answer", "a non-empty string or a number", value)
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, numbers.Integral):
        return str(int(value))
    # float's own repr: the shortest string that reads back as the same number, also for NumPy's subclass of it.
    text = str(value) if isinstance(value, Decimal) else float.__repr__(float(value))
    if not Decimal(text).is_finite():
        raise _fault(where, "answer", "a finite number", value)
    return number_text(text)


def _fault(where: str, field: str, expected: str, value: object) -> ProblemFormatError:
    return ProblemFormatError(f"{where}: the field {field!r} must be {expected}, got {_describe(value)}.")


def _describe(value: object) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 80 else text[:77] + '...'}"


def _keys(record: Mapping[str, Any]) -> str:
    return ", ".join(map(repr, record)) or "no fields"
