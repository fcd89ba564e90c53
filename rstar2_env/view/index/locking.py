"""The lock of an index: only the viewer that holds the lock may fill or remove the index."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import IO


def lock_file(index: Path) -> Path:
    """Return the path of an index's lock file, whose modification time shows when a viewer last opened the index."""
    return index.with_suffix(".lock")


def claim(index: Path) -> IO[bytes] | None:
    """Try to lock an index, without waiting.

    Args:
        index: File of the index.

    Returns:
        The lock, held until it is closed; ``None`` if another viewer holds it.

    Raises:
        OSError: The lock file cannot be written.
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
            return lock  # the file system does not support locks: rely on SQLite's own
        if _is_at(path, lock):
            return lock
        lock.close()  # the previous holder deleted the file: retry with the new one


def _is_at(path: Path, lock: IO[bytes]) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(lock.fileno()))
    except FileNotFoundError:
        return False
