"""A cache of file sources, one per process, since a trainer may create a hundred environments that read one file.

A source is cached as long as it is referenced; the most recent sources are also kept without a reference. A file is
read again when its modification time or size changes. Sources are immutable, so they can be shared. Not covered:
sharing between processes.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from rstar2_env.problems.source import ProblemSource

_ALWAYS_KEPT = 4

_sources: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()
_recent: OrderedDict[Hashable, Any] = OrderedDict()
_lock = threading.RLock()


def cached(key: Hashable, make: Callable[[], ProblemSource]) -> ProblemSource:
    """Return the source for a key; the first caller creates it while other callers wait.

    If the key cannot be hashed, for example because it contains a list, each call creates the source.
    """
    try:
        hash(key)
    except TypeError:
        return make()
    with _lock:
        source = _sources.get(key)
        if source is None:
            source = _sources[key] = make()
        _recent[key] = source
        _recent.move_to_end(key)
        while len(_recent) > _ALWAYS_KEPT:
            _recent.popitem(last=False)
        found: ProblemSource = source
        return found


def stamp(path: Path) -> tuple[str, int, int] | None:
    """Return the state of a file or folder, to detect changes; ``None`` if it does not exist.

    Returns:
        The real path, the time of the last modification in nanoseconds, and the size in bytes; for a folder, the
        latest modification of the ``*.json`` files in it, and their number.
    """
    try:
        status = path.stat()
        if path.is_dir():
            states = [entry.stat().st_mtime_ns for entry in path.rglob("*.json")]
            return str(path.resolve()), max(states, default=status.st_mtime_ns), len(states)
    except OSError:
        return None
    return str(path.resolve()), status.st_mtime_ns, status.st_size


def forget() -> None:
    """Drop the cache's references to its sources, so that unused sources are freed."""
    with _lock:
        _recent.clear()


def _after_fork() -> None:
    # Another thread of the parent may have held the lock at the fork, and would never release it here.
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_after_fork)
