"""Convert options to JSON-compatible values that configure the same run, and copy fields between option classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from rstar2_env.core.options.parts import Part


def plain(name: str, value: Any) -> Any:
    """Return the value of an option in a form that can be stored in a file.

    Args:
        name: The option, without its group.
        value: Its value. A loaded model becomes the name of its type, a part becomes a table, and a class or function
            becomes its ``code_name``.
    """
    if name == "wrappers":
        return _recorded(value) if value else []
    if name == "path":
        return value if isinstance(value, str) else type(value).__name__
    if name == "env":
        return value if isinstance(value, str) else code_name(value)
    if isinstance(value, Part):
        return {"name": value.name, **{option: _named(given) for option, given in value.options.items()}}
    if isinstance(value, list):
        return [plain("", one) for one in value]
    return dict(value) if isinstance(value, Mapping) else value


def shared_fields(kind: type[Any], record: Any) -> dict[str, Any]:
    """Return, by name, the values of the fields that ``record`` has in common with the dataclass ``kind``."""
    return {one.name: getattr(record, one.name) for one in fields(kind) if hasattr(record, one.name)}


def _named(value: Any) -> Any:
    """Return the value of a part's option with classes and functions, at any depth, replaced by their ``code_name``."""
    if isinstance(value, Mapping):
        return {key: _named(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_named(one) for one in value]
    return code_name(value) if callable(value) else value


def _recorded(wrappers: str | list[Any]) -> list[str]:
    from rstar2_env.wrappers.registry import recorded  # here, since most runs have no wrappers

    return recorded(wrappers)


def code_name(made_by: Any) -> str:
    """Return the name under which a file stores a class or function.

    The name is ``module:Name`` if this can be imported, otherwise ``Name`` alone, such as for a class in ``__main__``.
    """
    name = getattr(made_by, "__qualname__", type(made_by).__qualname__)
    module = getattr(made_by, "__module__", "")
    return f"{module}:{name}" if module not in ("", "__main__") and name.isidentifier() else name
