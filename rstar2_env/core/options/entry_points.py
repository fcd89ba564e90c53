"""Reads the entry points of installed distributions once, since each query opens a file per distribution."""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from typing import Any


def entry_points(group: str) -> metadata.EntryPoints:
    """Return the entry points of a group, from a cache that is renewed after ``sys.path`` has changed."""
    found: metadata.EntryPoints = _all(tuple(sys.path)).select(group=group)
    return found


@dataclass(frozen=True, slots=True)
class LoadedPoint:
    """An entry point after an attempt to load it.

    Attributes:
        name: Name of the entry point.
        value: The module or object that the entry point names.
        distribution: Name of the distribution that declares the entry point.
        fault: The error if the entry point did not load; otherwise "".
    """

    name: str
    value: str
    distribution: str
    fault: str = ""


def load_entry_points(group: str, kind: str, use: Callable[[Any], object] = lambda part: None) -> Iterator[LoadedPoint]:
    """Load every entry point of a group; if one fails, issue a ``RuntimeWarning`` and continue with the next.

    Args:
        group: The group.
        kind: Kind of the parts, for the warning ("agent").
        use: Called with each loaded object; an error in it counts as a failure of the entry point.

    Yields:
        Each entry point, after it was loaded or has failed.
    """
    for point in entry_points(group):
        distribution = point.dist.name if point.dist is not None else "unknown"
        fault = ""
        try:
            use(point.load())
        except (Exception, SystemExit) as error:
            # A broken third-party distribution must not disable the built-in parts.
            fault = f"{type(error).__name__}: {error}"
            warnings.warn(
                f"The Python package {distribution!r} provides the {kind} {point.name!r} ({point.value}), "
                f"which could not be loaded and is left out: {fault}",
                RuntimeWarning,
                stacklevel=3,
            )
        yield LoadedPoint(point.name, point.value, distribution, fault)


@functools.lru_cache(maxsize=2)
def _all(path: tuple[str, ...]) -> Any:
    # Python 3.11 and 3.12 return different types; both have `select`.
    return metadata.entry_points()
