"""Converts values from files to strict JSON, as browsers require it."""

from __future__ import annotations

import json
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.files.json_values import jsonable


def to_json(value: Any) -> str:
    """Convert a value to JSON text; numbers that are not finite become null.

    Raises:
        ConfigurationError: The value is nested too deeply.
    """
    try:
        try:
            return _written(value)
        except ValueError:  # a number that is not finite, such as 1e999
            return _written(jsonable(value))
    except RecursionError:
        raise ConfigurationError("This part of the file is nested too deeply to be shown.") from None


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
