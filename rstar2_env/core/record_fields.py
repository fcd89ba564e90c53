"""Readers of the values of a record: each takes what JSON gave and returns the value, or says what it must be."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from rstar2_env.core.status import ToolStatus

T = TypeVar("T")


def a(kind: type[T] | tuple[type[T], ...], what: str) -> Callable[[Any], T]:
    """Reads a value of that type; a bool does not count as a number."""

    def read(value: Any) -> T:
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise TypeError(f"must be {what}, not {str(value)[:100]!r}.")
        return value

    return read


def or_none(read: Callable[[Any], T]) -> Callable[[Any], T | None]:
    """Reads ``null`` too."""
    return lambda value: None if value is None else read(value)


def list_of(read: Callable[[Any], T]) -> Callable[[Any], list[T]]:
    """Reads a list of such values."""
    return lambda value: [read(item) for item in a(list, "a list")(value)]


def dict_of(read: Callable[[Any], T]) -> Callable[[Any], dict[str, T]]:
    """Reads an object whose values are all such."""
    return lambda value: {text(name): read(item) for name, item in mapping(value).items()}


def mapping(value: Any) -> dict[str, Any]:
    """Reads an object."""
    if not isinstance(value, Mapping):
        raise TypeError(f"must be an object, not {str(value)[:100]!r}.")
    return dict(value)


def decimal(value: Any) -> float:
    """Reads a number as a float; ``null``, which stands for a number that is not finite, as NaN."""
    return math.nan if value is None else float(a((int, float), "a number")(value))


def status(value: Any) -> ToolStatus:
    """Reads the status of a tool call."""
    try:
        return ToolStatus(value)
    except ValueError:
        raise ValueError(f"has {value!r}, which is none of the statuses {', '.join(ToolStatus)}.") from None


text = a(str, "a text")
number = a(int, "a whole number")
truth = a(bool, "true or false")
