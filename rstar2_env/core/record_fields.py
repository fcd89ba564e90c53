"""Readers of JSON values: each takes a value and returns the parsed value, or raises an error."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from rstar2_env.core.status import ToolStatus

T = TypeVar("T")


def instance_of(kind: type[T] | tuple[type[T], ...], what: str) -> Callable[[Any], T]:
    """Return a function that returns a value of a type unchanged, and raises an error for any other value.

    Args:
        kind: The type, or several types; a bool is accepted only for ``bool``.
        what: Description of the expected value, for the error message.
    """
    kinds = frozenset(kind if isinstance(kind, tuple) else (kind,))

    def read(value: Any) -> T:
        if type(value) in kinds:  # the common case, faster than the checks below
            accepted: T = value
            return accepted
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise TypeError(f"expected {what}, got {str(value)[:100]!r}.")
        return value

    return read


def or_none(read: Callable[[Any], T]) -> Callable[[Any], T | None]:
    """Return a function that reads ``null`` as ``None``, and any other value with ``read``."""
    return lambda value: None if value is None else read(value)


def list_of(read: Callable[[Any], T]) -> Callable[[Any], list[T]]:
    """Return a function that reads a list, each item with ``read``."""
    return lambda value: [read(item) for item in _list(value)]


def dict_of(read: Callable[[Any], T]) -> Callable[[Any], dict[str, T]]:
    """Return a function that reads a JSON object, each of its values with ``read``."""
    return lambda value: {text(name): read(item) for name, item in mapping(value).items()}


def mapping(value: Any) -> dict[str, Any]:
    """Read a JSON object."""
    if type(value) is not dict and not isinstance(value, Mapping):
        raise TypeError(f"expected an object, got {str(value)[:100]!r}.")
    return dict(value)


def decimal(value: Any) -> float:
    """Read a number as a float; ``null``, which stands for a number that is not finite, becomes NaN."""
    return math.nan if value is None else float(_number(value))


def status(value: Any) -> ToolStatus:
    """Read the status of a tool call."""
    try:
        return ToolStatus(value)
    except ValueError:
        raise ValueError(f"expected one of the statuses {', '.join(ToolStatus)}, got {value!r}.") from None


text = instance_of(str, "a text")
number = instance_of(int, "a whole number")
truth = instance_of(bool, "true or false")
_number = instance_of((int, float), "a number")
_list: Callable[[Any], list[Any]] = instance_of(list, "a list")
