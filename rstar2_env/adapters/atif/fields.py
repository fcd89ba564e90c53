"""Checked access to the fields of a trajectory: each error names the field, the expected value and the actual value."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from rstar2_env.core import record_fields as read
from rstar2_env.core.errors import RecordFormatError

T = TypeVar("T")

OWN = "rstar2_env"
"""Key in each ``extra`` object under which this package stores data for which the format has no field."""
OWN_PLACE = f"extra.{OWN}"
SOURCES = ("system", "user", "agent")
AGENT_ONLY = ("model_name", "reasoning_effort", "reasoning_content", "tool_calls", "metrics")


def token_id(value: Any) -> int:
    """Convert a value to a token id; raise ``ValueError`` if it is negative."""
    if read.number(value) < 0:
        raise ValueError(f"expected a token id, at least 0, got {value}.")
    return int(value)


def finite(value: Any) -> float:
    """Convert a value to a float; raise ``ValueError`` if it is not a finite number."""
    number = read.instance_of((int, float), "a number")(value)
    if not math.isfinite(number):
        raise ValueError(f"expected a finite number, got {value!r}.")
    return float(number)


def field(record: Mapping[str, Any], name: str, place: str, take: Callable[[Any], T]) -> T:
    """Read a required field.

    Args:
        record: The object that contains the field.
        name: Key of the field.
        place: Path of the object in the trajectory, such as ``steps[3]``; empty for the trajectory itself.
        take: Function that checks and converts the value.

    Raises:
        RecordFormatError: The field is missing or has a wrong value.
    """
    at = f"{place}.{name}" if place else name
    if record.get(name) is None:
        raise RecordFormatError(f"{at}: the field is missing.")
    try:
        return take(record[name])
    except RecordFormatError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise RecordFormatError(f"{at}: {error}") from error


def optional(record: Mapping[str, Any], name: str, place: str, take: Callable[[Any], T]) -> T | None:
    """Read an optional field; return ``None`` if it is missing or null. For the arguments see ``field``.

    Raises:
        RecordFormatError: The field has a wrong value.
    """
    return None if record.get(name) is None else field(record, name, place, take)


def objects(record: Mapping[str, Any], name: str, place: str) -> list[tuple[str, dict[str, Any]]]:
    """Read an optional list of objects; return each object with its path, or an empty list if the field is missing.

    Raises:
        RecordFormatError: The value is not a list of objects.
    """
    found = optional(record, name, place, read.list_of(read.mapping)) or []
    at = f"{place}.{name}" if place else name
    return [(f"{at}[{number}]", one) for number, one in enumerate(found)]


def text_of(record: Mapping[str, Any], name: str, place: str) -> str:
    """Read a text, or join a list of text parts; return "" if the field is missing.

    Raises:
        RecordFormatError: The value is neither a text nor a list, or a part is an image or audio.
    """
    value = record.get(name)
    if not isinstance(value, list):
        return optional(record, name, place, read.text) or ""
    texts = []
    for at, part in objects(record, name, place):
        if part.get("type") != "text":
            raise RecordFormatError(
                f"{at}.type: expected 'text', got {str(part.get('type'))[:100]!r}: episodes hold text only. "
                "Leave the trajectory out."
            )
        texts.append(field(part, "text", at, read.text))
    return "".join(texts)


def own(record: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Return the data that this package stored in the ``extra`` of an object; empty if another tool wrote the object.

    Raises:
        RecordFormatError: The data is not a JSON object.
    """
    extra = optional(record, "extra", place, read.mapping) or {}
    return optional(extra, OWN, f"{place}.extra" if place else "extra", read.mapping) or {}
