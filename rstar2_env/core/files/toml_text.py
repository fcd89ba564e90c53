"""Converts plain values to TOML text.

Covered: mappings of names to values; inner mappings become tables, and ``None``, which TOML lacks, becomes a comment.
Not covered: the reverse, which Python's ``tomllib`` does.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml_text(values: Mapping[str, Any]) -> str:
    """Return a TOML document that parses to ``values``; ``None`` values become comments.

    Args:
        values: Strings, numbers, booleans, ``None``, and lists and mappings of them.
    """
    return "\n".join(_table(values, ())) + "\n"


def _table(values: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    inner = {name: value for name, value in values.items() if isinstance(value, Mapping) and not path}
    if path:
        yield f"[{'.'.join(map(_key, path))}]"
    for name, value in values.items():
        if name not in inner:
            yield f"# {_key(name)} = none" if value is None else f"{_key(name)} = {_value(value)}"
    for name, value in inner.items():
        yield ""
        yield from _table(value, (*path, name))


def _value(value: Any) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        pairs = [f"{_key(name)} = {_value(one)}" for name, one in value.items() if one is not None]
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(_value(one) for one in value if one is not None) + "]"
    return repr(value)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _text(value: str) -> str:
    # TOML has JSON's escapes, but has no surrogates and requires an escaped delete character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
