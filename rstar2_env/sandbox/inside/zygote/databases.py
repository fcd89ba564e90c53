"""Lets programs use SQLite databases in files, although the sandbox refuses the kernel's file locks.

SQLite can also lock a database with a folder next to the file (``unix-dotfile``). Such a lock excludes concurrent
access by a program's processes as a file lock does, but does not support a write-ahead log:
``PRAGMA journal_mode=WAL`` leaves the journal mode unchanged.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
from types import ModuleType

from .import_hook import AfterImport

_NAME = b"unix-dotfile"


def lock_databases_by_folders() -> None:
    """Make SQLite lock a database with a folder next to it instead of a file lock.

    This takes effect now, or as soon as a program imports ``sqlite3``.
    """
    if "sqlite3" in sys.modules:
        _use_folders(sys.modules["sqlite3"])
    AfterImport("databases", {"sqlite3": _use_folders}).install()


def _use_folders(_: ModuleType) -> None:
    """Make ``unix-dotfile`` the default file system layer of the SQLite library that the module ``_sqlite3`` uses."""
    with contextlib.suppress(AttributeError, OSError):  # a build that hides the functions
        library = ctypes.CDLL(getattr(sys.modules["_sqlite3"], "__file__", None))
        library.sqlite3_vfs_find.restype = ctypes.c_void_p
        library.sqlite3_vfs_register(ctypes.c_void_p(library.sqlite3_vfs_find(_NAME)), 1)
