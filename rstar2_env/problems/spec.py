"""Reads what a user writes for a source of problems, on a command line or in a configuration, into name and options.

Covered: ``NAME[:OPTION=VALUE,...]`` with JSON values that may hold commas; JSON objects. Not covered: what the options
mean (see ``load``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options import parse_options
from rstar2_env.problems.records import FIELDS

_WITH_OPTIONS = re.compile(r"(?P<name>.*?):(?P<options>[A-Za-z_]\w*=.*)", re.DOTALL)
_OPENING, _CLOSING = "[{(", "]})"


def split_spec(spec: str) -> tuple[str, dict[str, Any]]:
    """A name and its options: ``"a.csv:question=problem,limit=5"`` are ``"a.csv"`` and two options.

    ``question=``, ``answer=``, ``id=`` and ``source=`` are short for ``columns={...}``. A text that names a file that
    exists is that name, whatever it holds.

    Raises:
        ConfigurationError: An option is not ``name=value``, or comes twice.
    """
    match = _WITH_OPTIONS.fullmatch(spec)
    if match is None or _exists(spec):
        return spec, {}
    options = parse_options(split_list(match["options"]))
    columns = {name: str(options.pop(name)) for name in FIELDS if name in options}
    if columns:
        written = options.get("columns", {})
        options["columns"] = {**(written if isinstance(written, Mapping) else {}), **columns}
    return match["name"], options


def split_list(text: str) -> list[str]:
    """Split at commas outside quotes and brackets; a bracket that never closes protects nothing."""
    parts, start, depth, quoted = [], 0, 0, False
    for at, sign in enumerate(text):
        if sign == '"' and (at == 0 or text[at - 1] != "\\"):
            quoted = not quoted
        elif quoted:
            continue
        elif sign in _OPENING:
            depth += 1
        elif sign in _CLOSING:
            depth = max(0, depth - 1)
        elif sign == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    if quoted or depth:
        return [part for part in text.split(",") if part]
    parts.append(text[start:])
    return [part for part in parts if part]


def json_spec(text: str) -> Mapping[str, Any]:
    """A source written as a JSON object.

    Raises:
        ConfigurationError: It is not one.
    """
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ConfigurationError(f"The source {text[:80]!r} begins like a JSON object and is none: {error}.") from error
    assert isinstance(value, Mapping)  # it begins with a brace
    return value


def _exists(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False
