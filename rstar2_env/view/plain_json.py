"""Converts values from files to strict JSON, as browsers require it."""

from __future__ import annotations

import json
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.files.json_values import jsonable


def to_json(value: Any, *, ascii_only: bool = False) -> str:
    """Convert a value to JSON text; numbers that are not finite become null.

    Args:
        value: Value from a file or a query.
        ascii_only: Escape all characters outside ASCII, and all characters that a terminal may interpret.

    Raises:
        ConfigurationError: The value is nested too deeply.
    """
    try:
        try:
            return _written(value, ascii_only)
        except ValueError:  # a number that is not finite, such as 1e999
            return _written(jsonable(value), ascii_only)
    except RecursionError:
        raise ConfigurationError("This part of the file is nested too deeply to be shown.") from None


def _written(value: Any, ascii_only: bool) -> str:
    text = json.dumps(value, ensure_ascii=ascii_only, allow_nan=False, separators=(",", ":"))
    return text.replace("\x7f", "\\u007f") if ascii_only else text
