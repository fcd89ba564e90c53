"""The SQL tables of an index, and functions that open and remove index files.

There is one SQLite file per run, in the user's cache folder: SQLite's write-ahead log works on one machine only, while
runs may be on shared or read-only disks. An index can be deleted at any time and is then rebuilt.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import sqlite3
import time
from pathlib import Path
from typing import get_args, get_type_hints

from rstar2_env.view.index.episode_columns import EpisodeFacts
from rstar2_env.view.index.locking import claim, lock_file

VERSION = 3
"""Version of the tables; an index with another version is rebuilt."""
WAIT_MS = 30_000
"""Maximum wait for locks of other connections, in milliseconds."""
KEEP_DAYS = 60
"""Number of days without use after which an index is removed."""
_NAME = re.compile(r"[A-Za-z0-9-]{0,40}-[0-9a-f]{16}\.sqlite")
"""Pattern of the file names that ``index_file`` makes."""
_SQLITE_SUFFIXES = ("-wal", "-shm")
"""Suffixes of the files that SQLite keeps next to an index."""
_TYPES = {int: "INTEGER", float: "REAL", str: "TEXT"}
_COLUMNS = ", ".join(
    f"{name} {next(_TYPES[kind] for kind in (hint, *get_args(hint)) if kind in _TYPES)}"
    for name, hint in get_type_hints(EpisodeFacts).items()
)
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
    problem INTEGER, {_COLUMNS});
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
    """Return the folder of all indexes: ``RSTAR2_VIEW_CACHE``, else a folder below the user's cache folder."""
    if given := os.environ.get("RSTAR2_VIEW_CACHE"):
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "rstar2" / "view"


def index_file(cache: Path, run: Path) -> Path:
    """Return the path of a run's index; the file name is readable and contains a digest of the run's path."""
    where = os.path.realpath(run)
    name = "".join(letter if letter.isalnum() and letter.isascii() else "-" for letter in run.name)[:40]
    return cache / f"{name}-{hashlib.sha256(os.fsencode(where)).hexdigest()[:16]}.sqlite"


def connect(file: Path, *, checks_tables: bool) -> sqlite3.Connection:
    """Open an index for reading and writing.

    Args:
        file: The index.
        checks_tables: Whether to create missing tables, and to recreate the tables if they are of another version; this
            waits for other connections that write. If false, tables are created in a new file only.

    Raises:
        sqlite3.Error: The file cannot be opened or is damaged.
    """
    # Autocommit: transactions are begun and committed explicitly.
    connection = sqlite3.connect(file, timeout=WAIT_MS / 1000, isolation_level=None, check_same_thread=False)
    try:
        connection.execute(f"PRAGMA busy_timeout = {WAIT_MS}")
        if checks_tables or connection.execute("PRAGMA user_version").fetchone() == (0,):
            connection.execute("PRAGMA journal_mode = WAL")
            _make(connection)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA cache_size = -32768")
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
        with contextlib.suppress(sqlite3.OperationalError):  # without FTS5, searches read the files instead
            connection.execute(_WORDS)
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def has_words(connection: sqlite3.Connection) -> bool:
    """Whether an index has a full-text index, which needs FTS5 in SQLite."""
    found = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'words'").fetchone()
    if found is None:
        return False
    try:
        connection.execute("SELECT 1 FROM words LIMIT 0")
    except sqlite3.OperationalError:
        return False
    return True


def version_of(connection: sqlite3.Connection) -> int:
    """Return the version of an index's content: a counter that grows with every change."""
    found = connection.execute("SELECT value FROM meta WHERE name = 'version'").fetchone()
    return int(found[0]) if found else 0


def remove(file: Path) -> None:
    """Delete an index but not its lock file.

    Args:
        file: The index; the caller holds its lock.
    """
    for suffix in ("", *_SQLITE_SUFFIXES):
        file.with_name(file.name + suffix).unlink(missing_ok=True)


def remove_old(cache: Path, *, days: float = KEEP_DAYS) -> None:
    """Delete indexes that were not used for a long time, with their lock files; indexes in use are kept.

    Args:
        cache: Folder of indexes; other files in it are not touched.
        days: Number of days without use.
    """
    limit = time.time() - days * 86400
    for path in list(cache.glob("*.lock")):
        file = path.with_suffix(".sqlite")
        try:
            if _NAME.fullmatch(file.name) is None or _last_used(file) >= limit or (lock := claim(file)) is None:
                continue
            with lock:
                if _last_used(file) < limit:
                    remove(file)
                    path.unlink(missing_ok=True)
        except OSError:
            continue


def _last_used(file: Path) -> float:
    """Time when an index was last opened or written, in seconds since 1970."""
    found = [file, lock_file(file), *(file.with_name(file.name + suffix) for suffix in _SQLITE_SUFFIXES)]
    return max((path.stat().st_mtime for path in found if path.exists()), default=0.0)
