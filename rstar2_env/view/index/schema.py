"""The tables of an index, and how its file is opened.

One file of SQLite a run, in the user's cache folder: its write-ahead log needs one machine, and runs lie on disks that
several share, or that nobody may write to. An index can be deleted at any time; it is built again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import sqlite3
import time
from pathlib import Path

from rstar2_env.view.index.facts import COLUMNS
from rstar2_env.view.index.locking import claim, lock_file

VERSION = 2
"""Grows when an index of the version before would be misread; such an index is built again."""
WAIT_MS = 30_000
"""Milliseconds that a reader or writer waits for another one."""
KEEP_DAYS = 60
"""Indexes that nobody opened for so long are removed."""
_NAME = re.compile(r"[A-Za-z0-9-]{0,40}-[0-9a-f]{16}\.sqlite")
"""Names of indexes, as ``index_file`` makes them."""
_BESIDE = ("-wal", "-shm")
"""What SQLite keeps beside the file of an index."""
_INTEGERS = frozenset(COLUMNS) - {
    *("split", "end", "reason", "source", "statuses", "injected", "answer"),
    *("reward", "advantage", "seconds"),
}
_REALS = frozenset({"reward", "advantage", "seconds"})


def _column(name: str) -> str:
    return f"{name} {'INTEGER' if name in _INTEGERS else 'REAL' if name in _REALS else 'TEXT'}"


_TABLES = f"""
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT);
CREATE TABLE IF NOT EXISTS files (
    id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, what TEXT, split TEXT, step INTEGER, rank INTEGER,
    inode INTEGER, size INTEGER, mtime INTEGER, offset INTEGER, lines INTEGER, head BLOB, tail BLOB,
    texted INTEGER, worded INTEGER, broken TEXT);
CREATE TABLE IF NOT EXISTS answers (name TEXT PRIMARY KEY, version INTEGER, value TEXT);
CREATE TABLE IF NOT EXISTS notes (file INTEGER, line INTEGER, text TEXT);
CREATE TABLE IF NOT EXISTS problems (
    id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, task TEXT, source TEXT, difficulty TEXT, question TEXT,
    gold TEXT);
CREATE TABLE IF NOT EXISTS episodes (
    id INTEGER PRIMARY KEY AUTOINCREMENT, file INTEGER, line INTEGER, start INTEGER, at INTEGER, length INTEGER,
    problem INTEGER, {", ".join(map(_column, COLUMNS))});
CREATE INDEX IF NOT EXISTS by_place ON episodes (split, step, round, grp, member, file, line);
CREATE INDEX IF NOT EXISTS by_file ON episodes (file, start, at);
CREATE INDEX IF NOT EXISTS by_problem ON episodes (problem, split, step);
CREATE TABLE IF NOT EXISTS tokens (
    file INTEGER, line INTEGER, start INTEGER, at INTEGER, length INTEGER, step INTEGER, grp INTEGER, member INTEGER);
CREATE INDEX IF NOT EXISTS tokens_by_place ON tokens (step, grp, member);
CREATE INDEX IF NOT EXISTS tokens_by_file ON tokens (file);
"""
_WORDS = "CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(body, content='', tokenize=\"unicode61 tokenchars '_'\")"


def cache_folder() -> Path:
    """Where indexes are kept: ``RSTAR2_VIEW_CACHE``, else below the user's cache folder."""
    if given := os.environ.get("RSTAR2_VIEW_CACHE"):
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "rstar2" / "view"


def index_file(cache: Path, run: Path) -> Path:
    """The index of a run: a name that tells it, and a digest of where it lies."""
    where = os.path.realpath(run)
    name = "".join(letter if letter.isalnum() and letter.isascii() else "-" for letter in run.name)[:40]
    return cache / f"{name}-{hashlib.sha256(os.fsencode(where)).hexdigest()[:16]}.sqlite"


def connect(file: Path, *, writes: bool) -> sqlite3.Connection:
    """Open an index; ``writes`` makes its tables where they are missing, and builds one of another version anew.

    Raises:
        sqlite3.Error: It cannot be opened, or is damaged.
    """
    # Autocommit: transactions are begun and ended by name.
    connection = sqlite3.connect(file, timeout=WAIT_MS / 1000, isolation_level=None, check_same_thread=False)
    try:
        connection.execute(f"PRAGMA busy_timeout = {WAIT_MS}")
        if writes:
            connection.execute("PRAGMA journal_mode = WAL")
            _make(connection)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA cache_size = -{32768 if writes else 16384}")
        connection.execute("PRAGMA temp_store = MEMORY")
    except BaseException:
        connection.close()
        raise
    return connection


def _make(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, VERSION):
            for (name,) in connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
                " AND (name NOT LIKE 'words%' OR name = 'words')"
            ).fetchall():
                connection.execute(f'DROP TABLE IF EXISTS "{name}"')
        for statement in _TABLES.split(";"):
            if statement.strip():
                connection.execute(statement)
        with contextlib.suppress(sqlite3.OperationalError):  # without FTS5 searches read the files instead
            connection.execute(_WORDS)
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def has_words(connection: sqlite3.Connection) -> bool:
    """Whether the index has words to search: whether this SQLite has FTS5."""
    found = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'words'").fetchone()
    if found is None:
        return False
    try:
        connection.execute("SELECT 1 FROM words LIMIT 0")
    except sqlite3.OperationalError:
        return False
    return True


def remove(file: Path) -> None:
    """Remove what an index holds; its lock stays.

    Args:
        file: The index, whose lock is held.
    """
    for suffix in ("", *_BESIDE):
        file.with_name(file.name + suffix).unlink(missing_ok=True)


def remove_old(cache: Path, *, days: float = KEEP_DAYS) -> None:
    """Remove indexes, with their locks, that nobody opened for a long time; one that a viewer has open stays.

    Args:
        cache: Folder of indexes; files of other names in it are left alone.
        days: How long is long.
    """
    limit = time.time() - days * 86400
    for path in list(cache.glob("*.lock")):
        file = path.with_suffix(".sqlite")
        try:
            if _NAME.fullmatch(file.name) is None or _opened_last(file) >= limit or (lock := claim(file)) is None:
                continue
            with lock:
                if _opened_last(file) < limit:
                    remove(file)
                    path.unlink(missing_ok=True)
        except OSError:
            continue


def _opened_last(file: Path) -> float:
    """When an index was opened or written last, in seconds since 1970."""
    found = [file, lock_file(file), *(file.with_name(file.name + suffix) for suffix in _BESIDE)]
    return max((one.stat().st_mtime for one in found if one.exists()), default=0.0)
