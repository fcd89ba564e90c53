"""Entry points of installed distributions, read once, since each query opens a file of each distribution."""

from __future__ import annotations

import functools
import sys
from importlib import metadata
from typing import Any


def entry_points(group: str) -> metadata.EntryPoints:
    """Return the entry points of a group; they are read again after ``sys.path`` has changed."""
    found: metadata.EntryPoints = _all(tuple(sys.path)).select(group=group)
    return found


@functools.lru_cache(maxsize=2)
def _all(path: tuple[str, ...]) -> Any:
    # Python 3.11 and 3.12 return different types; both have `select`.
    return metadata.entry_points()
