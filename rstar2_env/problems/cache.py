"""Sources of files are made once per process: a trainer makes a hundred environments on one file.

A source is kept as long as somebody holds it, and the last few always; it is made anew when the file's time or size
changes. Sources never change, so everybody may share one. Not covered: sharing between processes.
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
    """The source of that key; the first caller makes it while the others wait.

    A key that cannot be hashed (a condition on a list) is no key: the source is made anew.
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
    """What tells one content of a file or folder from another: path, time and size; ``None`` where there is none."""
    try:
        status = path.stat()
        if path.is_dir():
            states = [entry.stat().st_mtime_ns for entry in path.rglob("*.json")]
            return str(path.resolve()), max(states, default=status.st_mtime_ns), len(states)
    except OSError:
        return None
    return str(path.resolve()), status.st_mtime_ns, status.st_size


def forget() -> None:
    """Let go of every source that nobody holds."""
    with _lock:
        _recent.clear()


def _after_fork() -> None:
    # Another thread of the parent may have held the lock.
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_after_fork)
