"""``RunIndex``: the index of one run on disk, updated from the run's files; thread-safe.

Several viewers may share an index: one of them fills it, under a lock, and all read it. If the cache folder cannot be
written, the index is stored in a temporary folder while it is open.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeVar

from rstar2_env.core.closing import Closing
from rstar2_env.core.errors import ConfigurationError, RecordFormatError
from rstar2_env.view.index.episode_columns import parse_line
from rstar2_env.view.index.filling import Filler
from rstar2_env.view.index.line_batches import LinePosition, line_at
from rstar2_env.view.index.line_files import line_files_of
from rstar2_env.view.index.locking import claim, lock_file
from rstar2_env.view.index.schema import WAIT_MS, cache_folder, connect, has_words, index_file, remove, version_of

ResultT = TypeVar("ResultT")

_MOST_READERS = 3
"""Maximum number of concurrent queries of an index."""


class RunIndex(Closing):
    """The index of one run. Close it when it is no longer needed; a closed index reopens on use.

    Args:
        run: Folder of the run, or the single file of an evaluation.
        cache: Folder of indexes [default: ``RSTAR2_VIEW_CACHE``, else a folder below ``~/.cache``].

    Attributes:
        run: The argument ``run``.
        file: The SQLite file.
        searches_words: Whether SQLite supports FTS5; without it, searches read the files of the run.

    Raises:
        ConfigurationError: The index cannot be opened: the disk is full, or permissions are missing.
    """

    def __init__(self, run: Path, cache: Path | None = None) -> None:
        self.run = run
        self._places = threading.Semaphore(_MOST_READERS)
        self._readers: list[sqlite3.Connection] = []
        self._closed = True
        self._making: dict[str, threading.Lock] = {}
        self._filling = threading.Lock()
        self._opening = threading.RLock()  # acquired after the other two
        self._claimed: IO[bytes] | None = None
        self._writer: sqlite3.Connection | None = None
        self._filler: Filler | None = None
        self.file = self._choose_file(cache or cache_folder())
        with self.reading() as db:
            self.searches_words = has_words(db)

    def _choose_file(self, cache: Path) -> Path:
        file = index_file(cache, self.run)
        try:
            cache.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock_file(file).touch()
        except OSError:
            own = tempfile.mkdtemp(prefix="rstar2-view-")
            weakref.finalize(self, shutil.rmtree, own, True)
            file = index_file(Path(own), self.run)
        return file

    def _open(self) -> sqlite3.Connection:
        with self._opening:
            try:
                connection = self._connect()
            except (sqlite3.Error, OSError) as error:
                raise ConfigurationError(
                    f"The index {self.file} cannot be opened: {error}. Check the free disk space, the permissions and "
                    "whether another program locks the file, or choose another folder with RSTAR2_VIEW_CACHE."
                ) from error
            self._closed = False
            return connection

    def _connect(self) -> sqlite3.Connection:
        try:
            # Only the first connection checks the tables, because this waits for connections that write.
            return connect(self.file, checks_tables=self._closed)
        except sqlite3.OperationalError:
            raise  # locked, disk full, no permission: the content may be intact
        except sqlite3.DatabaseError:
            if not self._may_fill():
                raise  # damaged: the viewer that fills it will rebuild it
            remove(self.file)  # it is only a cache
            return connect(self.file, checks_tables=True)

    def refresh(self, timeout_s: float = 60.0) -> bool:
        """Index new content of the run's files, for at most ``timeout_s`` seconds; thread-safe.

        Args:
            timeout_s: Time limit in seconds.

        Returns:
            Whether all content has been indexed, by this viewer or by the viewer that holds the lock.
        """
        with self._filling:
            if not self._may_fill():
                taken, total, *_ = self.progress()
                return taken >= total
            if self._filler is None:
                self._writer = self._open()
                self._filler = Filler(self._writer)
            return self._filler.fill(line_files_of(self.run), time.monotonic() + timeout_s)

    def _may_fill(self) -> bool:
        with self._opening:
            if self._claimed is None:
                self._claimed = claim(self.file)
            return self._claimed is not None

    @property
    def fills(self) -> bool:
        """Whether this viewer fills the index, rather than another process."""
        return self._claimed is not None

    @property
    def version(self) -> int:
        """Counter that grows with every change of the index by any viewer."""
        with self.reading() as db:
            return version_of(db)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Within the ``with`` block, read the database in one transaction, so that all queries see the same state."""
        with self._connected() as db:
            db.execute("BEGIN")
            try:
                yield db
            finally:
                db.execute("COMMIT")

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        """Within the block, use a connection that no other thread uses, so that a long query delays no other query."""
        with self._places, self._reader() as db:
            yield db

    @contextmanager
    def _reader(self) -> Iterator[sqlite3.Connection]:
        """Within the block, use a connection that no other thread uses; the caller must hold ``_places``."""
        db = self._readers.pop() if self._readers else self._open()
        try:
            yield db
        finally:
            self._readers.append(db)

    def query(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """Run one SQL query, and return all rows."""
        with self.reading() as db:
            return db.execute(statement, values).fetchall()

    def cached(self, name: str, make: Callable[[], ResultT], state: str | None = None) -> ResultT:
        """Return a result about the whole run: from the index, or else computed and stored there until the run changes.

        Other threads that need the result meanwhile wait for it.

        Args:
            name: Name of the result.
            make: Function that computes the result as a JSON-compatible value.
            state: State of the run to which the result belongs; ``None`` for the state of the indexed episodes.
        """
        with self._opening:
            making = self._making.setdefault(name, threading.Lock())
        with making:
            version = self.version if state is None else state
            with self.reading() as db:
                found = db.execute(
                    "SELECT value FROM answers WHERE name = ? AND version = ?", (name, version)
                ).fetchone()
            if found is not None:
                known: ResultT = json.loads(found[0])
                return known
            made = make()
            with self._places:  # ``close`` waits for it
                if self._closed:
                    return made
                with self._reader() as db:
                    # Skip it if another process is writing: not worth waiting for.
                    db.execute("PRAGMA busy_timeout = 0")
                    with contextlib.suppress(sqlite3.OperationalError):
                        db.execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?)", (name, version, json.dumps(made)))
                    db.execute(f"PRAGMA busy_timeout = {WAIT_MS}")
            return made

    def record(self, file: str, start: int, at: int, length: int) -> dict[str, Any]:
        """Read the record of an episode from one of the run's files.

        Args:
            file: Name of the file in the index.
            start: ``LinePosition.start`` of the record's line.
            at: ``LinePosition.at`` of the record's line.
            length: ``LinePosition.length`` of the record's line.

        Raises:
            OSError: The file cannot be read.
            EOFError: The file has changed since it was indexed; retry.
        """
        path = self.run if self.run.is_file() else self.run / file
        try:
            return parse_line(line_at(path, LinePosition(start, at, length)))
        except RecordFormatError as error:
            raise EOFError(f"{file} has changed: {error}") from error

    def progress(self) -> tuple[int, int, int, int]:
        """Return four counts: bytes of episodes read, bytes of episodes in total, searchable and indexed episodes."""
        total = sum(file.size for file in line_files_of(self.run) if file.what == "episodes")
        with self.reading() as db:
            taken, worded = db.execute(
                "SELECT sum(CASE WHEN size >= 0 THEN max(size, offset) ELSE offset END), sum(worded) FROM files"
                " WHERE what = 'episodes'"
            ).fetchone()
            (episodes,) = db.execute("SELECT count(*) FROM episodes").fetchone()
        searchable = (worded or 0) if self.searches_words else episodes
        return min(taken or 0, total), total, searchable, episodes

    def notes(self) -> list[str]:
        """Return notes on unreadable content; each names the file, and the line if a single line was skipped."""
        with self.reading() as db:
            broken = db.execute("SELECT name, broken FROM files WHERE broken != '' ORDER BY name").fetchall()
            lines = db.execute(
                "SELECT name, line, text FROM notes JOIN files ON files.id = notes.file ORDER BY name, line LIMIT 50"
            ).fetchall()
        found = [f"{name}: {text}; the earlier content of the file was read." for name, text in broken]
        return found + [f"{name}, line {line}: {text}; the line was skipped." for name, line, text in lines]

    def close(self) -> None:
        """Close the connections; the index stays on disk."""
        with self._filling, contextlib.ExitStack() as queries:
            for _ in range(_MOST_READERS):
                queries.enter_context(self._places)  # after the queries in progress
            for resource in (*self._readers, self._writer, self._claimed):
                if resource is not None:
                    resource.close()
            self._readers.clear()
            self._closed = True
            self._writer = self._filler = self._claimed = None
