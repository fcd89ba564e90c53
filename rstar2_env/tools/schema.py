"""Checks the arguments of a call against a tool's JSON schema.

Covered: ``type``, ``properties``, ``required``, ``additionalProperties: false``, ``enum``, ``items``, as used by
function schemas of chat models. Not covered: the rest of JSON Schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (dict, Mapping),
    "null": (type(None),),
}
_LONGEST_NAME = 80


def invalid_argument(schema: Mapping[str, Any], value: Any, where: str = "arguments") -> str | None:
    """Return the reason why ``value`` does not fit ``schema``, or ``None`` if it does.

    Args:
        schema: A JSON schema, with the keywords that the module's docstring lists.
        value: The arguments of a call, or a part of them.
        where: Name of ``value`` in the reason, such as ``arguments[0]``.
    """
    kinds = schema.get("type")
    names = [kinds] if isinstance(kinds, str) else list(kinds or [])
    if names and not any(_is_a(value, name) for name in names):
        return f"{where} must be of type {' or '.join(names)}, not {_type_name(value)}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{where} must be one of {schema['enum']}"
    if isinstance(value, Mapping):
        return _invalid_object(schema, value, where)
    if isinstance(value, list) and isinstance(schema.get("items"), Mapping):
        for index, item in enumerate(value):
            if fault := invalid_argument(schema["items"], item, f"{where}[{index}]"):
                return fault
    return None


def _invalid_object(schema: Mapping[str, Any], value: Mapping[str, Any], where: str) -> str | None:
    properties: Mapping[str, Any] = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            return f"{where} lacks the required {name!r}"
    for name, item in value.items():
        if name in properties:
            if fault := invalid_argument(properties[name], item, f"{where}.{name}"):
                return fault
        elif schema.get("additionalProperties") is False:
            known = ", ".join(map(repr, properties)) or "none"
            return f"{where} has an unknown {name[:_LONGEST_NAME]!r}; known: {known}"
    return None


def _is_a(value: Any, name: str) -> bool:
    if isinstance(value, bool) and name != "boolean":
        return False
    return isinstance(value, _TYPES.get(name, (object,)))


def _type_name(value: Any) -> str:
    for name in ("null", "boolean", "integer", "number", "string", "array", "object"):
        if _is_a(value, name):
            return name
    return type(value).__name__
