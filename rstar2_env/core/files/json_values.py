"""Converts values of environments and options to JSON-compatible values, before they are stored or written."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from enum import Enum
from typing import Any

import numpy as np

from rstar2_env.core.secret import Secret


def jsonable(value: Any) -> Any:
    """Return a JSON-compatible copy of a value.

    Args:
        value: Any value. NumPy numbers and arrays become numbers and lists, keys of mappings become text, other
            collections become lists (sets sorted by their text), enumerations become their values, and numbers that are
            not finite become ``None``; a value that JSON cannot represent becomes the name of its type.
    """
    if isinstance(value, Secret):
        return repr(value)
    if value is None or type(value) in (str, bool, int):
        return value
    if isinstance(value, Enum):
        return jsonable(value.value)
    if isinstance(value, (np.generic, np.ndarray)):
        return jsonable(value.tolist())
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, (str, int)):
        return str(value) if isinstance(value, str) else int(value)
    if isinstance(value, Mapping):
        return {str(key): jsonable(one) for key, one in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted((jsonable(one) for one in value), key=str)
    if isinstance(value, Collection) and not isinstance(value, (bytes, bytearray, memoryview)):
        return [jsonable(one) for one in value]
    return type(value).__qualname__
