"""JSON of what files hold, as strictly as a browser reads it."""

from __future__ import annotations

import json
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.files.json_values import jsonable


def dumped(value: Any) -> str:
    """A value as JSON; a number that is not finite is null.

    Raises:
        ConfigurationError: It is nested too deeply.
    """
    try:
        try:
            return _written(value)
        except ValueError:  # a number that is not finite, such as 1e999
            return _written(jsonable(value))
    except RecursionError:
        raise ConfigurationError("What the file holds here is nested too deeply to be shown.") from None


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
