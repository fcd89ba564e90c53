"""Parses options given as text, on a command line or in the notation of parts, according to their annotations.

Covered: ``Written``, text that is not parsed yet, and its conversion to a value; ``Typed``, text that is an option's
value. Not covered: ranges and choices (``rstar2_env.core.options.rules``).
"""

from __future__ import annotations

import enum
import json
import pathlib
from collections.abc import Callable, Mapping
from typing import Any, Literal, Self, get_args, get_origin

from rstar2_env.core.options.rules import is_list, is_mapping, is_record, members, says_nothing, unannotated

_TRUE, _FALSE, _NONE = ("true", "yes", "on", "1"), ("false", "no", "off", "0"), ("none", "null")
_OPENING, _CLOSING = "[{(", "]})"
_LAST = 9


class Typed(str):
    """A text that is the value of an option, with the option as it was typed on the command line.

    Args:
        text: The value.
        typed: The option as it was typed (``--sharding``), for error messages; empty if it was not typed there.
    """

    __slots__ = ("typed",)
    typed: str

    def __new__(cls, text: str, typed: str = "") -> Self:
        """Create the text of an option's value, and store ``typed``, the option as the user typed it."""
        written = super().__new__(cls, text)
        written.typed = typed
        return written


class Written(Typed):
    """The text of an option as a user wrote it, not parsed yet: the option's annotation determines the value."""

    __slots__ = ()


class UnreadableError(ValueError):
    """A text cannot be parsed as a value of the expected type."""


def read(text: str, hint: Any, record: Callable[[type, Mapping[str, Any]], Any]) -> Any:
    """Parse a text as a value of an annotated type.

    Args:
        text: The text.
        hint: The annotation of the parameter or field.
        record: Converts a dict to an instance of a dataclass, if the annotation is a dataclass.

    Raises:
        UnreadableError: The text is not a value of that type.
    """
    hint, rule = unannotated(hint)
    if says_nothing(hint):
        return next((choice for choice in rule.choices if str(choice) == text), read_loosely(text))
    kinds = members(hint)
    alone = sum(member is not type(None) for member in kinds) == 1
    for member in sorted(kinds, key=_order):
        try:
            return _read_as(str(text), member, record, alone=alone)
        except (UnreadableError, ValueError):
            continue
    raise UnreadableError(text)


def read_loosely(value: Any) -> Any:
    """Parse a text without a declared type: as JSON, or Python's ``True``, ``False``, ``None``; else keep the text."""
    if isinstance(value, Mapping):
        return {key: read_loosely(one) for key, one in value.items()}
    if not isinstance(value, Written):
        return value
    plain = str(value)
    if plain in ("True", "False", "None"):
        return {"True": True, "False": False, "None": None}[plain]
    try:
        return json.loads(plain)
    except (ValueError, RecursionError):
        return plain


def _order(member: Any) -> int:
    """Sort key of the types in a union: a type that accepts fewer texts is tried before one that accepts more."""
    member, _ = unannotated(member)
    simple = {type(None): 0, bool: 1, int: 2, float: 3, str: _LAST}
    if member in simple:
        return simple[member]
    if get_origin(member) is Literal or (isinstance(member, type) and issubclass(member, enum.Enum)):
        return 0
    return 4 if is_record(member) else 5 if is_list(member) or is_mapping(member) else 6


def _read_as(text: str, hint: Any, record: Callable[[type, Mapping[str, Any]], Any], *, alone: bool) -> Any:
    hint, _ = unannotated(hint)
    word = text.strip().lower()
    if hint is type(None):
        return _one_of(word, dict.fromkeys(_NONE))
    if hint is bool:
        return _one_of(word, dict.fromkeys(_TRUE, True) | dict.fromkeys(_FALSE, False))
    if hint is int:
        return _integer(text)
    if hint is float:
        return float(text)
    if hint is str:
        return _unquoted(text)
    if get_origin(hint) is Literal:
        return _one_of(text, {str(choice): choice for choice in get_args(hint)})
    if is_list(hint):
        return _list(text, hint, record, alone=alone)
    if is_mapping(hint) or is_record(hint):
        found = json.loads(text)
        if not isinstance(found, dict):
            raise UnreadableError(text)
        return record(hint, found) if is_record(hint) else found
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return _one_of(text, {name: one for one in hint for name in (one.name, str(one.value))})
    if isinstance(hint, type) and issubclass(hint, pathlib.PurePath):
        return hint(text)
    if says_nothing(hint):
        return read_loosely(Written(text))
    raise UnreadableError(text)


def _one_of(word: str, values: Mapping[str, Any]) -> Any:
    if word not in values:
        raise UnreadableError(word)
    return values[word]


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        number = float(text)  # such as "1e3"
    if not number.is_integer():
        raise UnreadableError(text)
    return int(number)


def _unquoted(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] == '"':
        try:
            return str(json.loads(text))
        except ValueError:
            pass
    return text


def _list(text: str, hint: Any, record: Callable[[type, Mapping[str, Any]], Any], *, alone: bool) -> Any:
    if text.lstrip().startswith("["):
        found: list[Any] = json.loads(text)
    elif alone or not text:
        # If the text could also be another type, only brackets mark a list.
        items = split_list(text)
        # In the notation of parts, commas separate options, and plus signs join a list.
        found = [Written(part.strip()) for part in (items if len(items) > 1 else split_parts(text))]
    else:
        raise UnreadableError(text)
    inner, kind = get_args(hint), get_origin(hint) or hint
    if kind is tuple and inner and Ellipsis not in inner and len(inner) == len(found):
        return tuple(_item(one, each, record) for one, each in zip(found, inner, strict=True))
    items = [_item(one, inner[0] if inner else Any, record) for one in found]
    return kind(items) if kind in (list, tuple, set, frozenset) else items


def _item(value: Any, hint: Any, record: Callable[[type, Mapping[str, Any]], Any]) -> Any:
    return read(value, hint, record) if isinstance(value, Written) else value


def split_list(text: str, separator: str = ",") -> list[str]:
    """Split a text at separators outside quotes and brackets; at all separators if a quote or bracket is unclosed."""
    parts, start, depth, quoted, escaped = [], 0, 0, False, False
    for at, sign in enumerate(text):
        if sign == '"' and not escaped:
            quoted = not quoted
        escaped = sign == "\\" and not escaped
        if sign == '"':
            continue
        if quoted:
            continue
        if sign in _OPENING:
            depth += 1
        elif sign in _CLOSING:
            depth = max(0, depth - 1)
        elif sign == separator and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    parts = text.split(separator) if quoted or depth else [*parts, text[start:]]
    return [part for part in parts if part]


def split_parts(text: str) -> list[str]:
    """Split a list joined by ``+``, and remove round brackets around items: ``"(a:b=1,c=2)+d"`` is two parts."""
    return [without_brackets(item.strip()) for item in split_list(text, "+")]


def without_brackets(item: str) -> str:
    """Remove the outer brackets of ``(a+b)`` if they match each other."""
    if not (item.startswith("(") and item.endswith(")")):
        return item
    depth = 0
    for at, sign in enumerate(item):
        depth += (sign == "(") - (sign == ")")
        if depth == 0:
            return item[1:-1] if at == len(item) - 1 else item
    return item
