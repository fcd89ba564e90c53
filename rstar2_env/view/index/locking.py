"""The lock of an index, by which one viewer at a time fills it, or removes it."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import IO


def lock_file(index: Path) -> Path:
    """The file of the lock, beside the index; when it was touched tells when a viewer opened the index last."""
    return index.with_suffix(".lock")


def claim(index: Path) -> IO[bytes] | None:
    """Take the lock of an index without waiting.

    Args:
        index: The file of the index.

    Returns:
        The lock, held until it is closed; ``None`` where another viewer holds it.

    Raises:
        OSError: The file of the lock cannot be written.
    """
    path = lock_file(index)
    while True:
        lock = path.open("ab")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            return None
        except OSError:
            return lock  # no locks on this file system: SQLite's own still hold
        if _is_at(path, lock):
            return lock
        lock.close()  # whoever held it removed it: the next one is another file


def _is_at(path: Path, lock: IO[bytes]) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(lock.fileno()))
    except FileNotFoundError:
        return False
