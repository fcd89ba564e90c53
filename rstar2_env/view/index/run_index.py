"""``RunIndex``: the index of one run, kept up to date from its files, read by any thread.

Several viewers at once may have the same index: one of them fills it, under a lock, and all read it. Where the cache
folder cannot be written, the index is in a temporary folder for as long as it is open.
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
from types import TracebackType
from typing import IO, Any, Self

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.view.index.filling import Filler
from rstar2_env.view.index.growing import Place, line_at
from rstar2_env.view.index.locking import claim, lock_file
from rstar2_env.view.index.schema import WAIT_MS, cache_folder, connect, has_words, index_file, remove
from rstar2_env.view.index.sources import Source, sources_of


class RunIndex:
    """The index of a run; close it when it is no longer needed. A closed one opens again when it is used.

    Args:
        run: The run's folder, or the single file of an evaluation.
        cache: Folder of indexes; by default the user's (``RSTAR2_VIEW_CACHE``, else below ``~/.cache``).

    Attributes:
        run: As given.
        file: The file of SQLite.
        searches_words: Whether this SQLite has FTS5; without it searches read the files.

    Raises:
        ConfigurationError: The index cannot be opened: its disk is full, or it may not be read or written.
    """

    def __init__(self, run: Path, cache: Path | None = None) -> None:
        self.run = run
        self._lock = threading.Lock()
        self._filling = threading.Lock()
        self._opening = threading.RLock()  # taken last
        self._held: IO[bytes] | None = None
        self._reader: sqlite3.Connection | None = None
        self._writer: sqlite3.Connection | None = None
        self._filler: Filler | None = None
        self.file = self._place(cache or cache_folder())
        with self.reading() as db:
            self.searches_words = has_words(db)

    def _place(self, cache: Path) -> Path:
        file = index_file(cache, self.run)
        try:
            cache.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock_file(file).touch()
        except OSError:
            own = tempfile.mkdtemp(prefix="rstar2-view-")
            weakref.finalize(self, shutil.rmtree, own, True)
            file = index_file(Path(own), self.run)
        return file

    def _opened(self) -> sqlite3.Connection:
        with self._opening:
            try:
                return self._connected()
            except (sqlite3.Error, OSError) as error:
                raise ConfigurationError(
                    f"The index {self.file} cannot be opened: {error}. Expected a disk with room, on which this user "
                    "may write, and no program that keeps the file locked; RSTAR2_VIEW_CACHE names another folder."
                ) from error

    def _connected(self) -> sqlite3.Connection:
        try:
            return connect(self.file, writes=True)
        except sqlite3.OperationalError:
            raise  # locked, a full disk, no permission: what is in it may be whole
        except sqlite3.DatabaseError:
            if not self._may_fill():
                raise  # damaged, and whoever fills it makes it anew
            remove(self.file)  # it is only a cache
            return connect(self.file, writes=True)

    def refresh(self, budget_s: float = 60.0) -> bool:
        """Take over what is new in the run's files, for a while; any thread, one at a time.

        Args:
            budget_s: Seconds after which to stop, if there is more.

        Returns:
            Whether everything that is there has been taken over; by another viewer, if one has the lock.
        """
        with self._filling:
            if not self._may_fill():
                taken, there, *_ = self.progress()
                return taken >= there
            if self._filler is None:
                self._writer = self._opened()
                self._filler = Filler(self._writer)
            return self._filler.fill(sources_of(self.run), time.monotonic() + budget_s)

    def _may_fill(self) -> bool:
        with self._opening:
            if self._held is None:
                self._held = claim(self.file)
            return self._held is not None

    @property
    def fills(self) -> bool:
        """Whether it is this viewer that fills the index."""
        return self._held is not None

    @property
    def version(self) -> int:
        """Grows with every change of what the index holds, by whichever viewer."""
        with self.reading() as db:
            found = db.execute("SELECT value FROM meta WHERE name = 'version'").fetchone()
        return int(found[0]) if found else 0

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The connection for reading, in one transaction, so that all answers are of one moment."""
        with self._lock:
            if self._reader is None:
                self._reader = self._opened()
            self._reader.execute("BEGIN")
            try:
                yield self._reader
            finally:
                self._reader.execute("COMMIT")

    def query(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of one query."""
        with self.reading() as db:
            return db.execute(statement, values).fetchall()

    def kept(self, name: str, make: Callable[[], Any]) -> Any:
        """An answer about the whole run, kept in the index until what it holds changes.

        Args:
            name: What the answer is called.
            make: Makes it, of what JSON can hold.
        """
        version = self.version
        with self.reading() as db:
            found = db.execute("SELECT value FROM answers WHERE name = ? AND version = ?", (name, version)).fetchone()
        if found is not None:
            return json.loads(found[0])
        made = make()
        with self._lock:
            if self._reader is not None:
                # Only where nobody writes: it is worth no waiting.
                self._reader.execute("PRAGMA busy_timeout = 0")
                with contextlib.suppress(sqlite3.OperationalError):
                    self._reader.execute(
                        "INSERT OR REPLACE INTO answers VALUES (?, ?, ?)", (name, version, json.dumps(made))
                    )
                self._reader.execute(f"PRAGMA busy_timeout = {WAIT_MS}")
        return made

    def line(self, file: str, place: Place) -> bytes:
        """A line of one of the run's files, read from the file.

        Args:
            file: The name that the index has of it.
            place: Where the line stands.

        Raises:
            OSError: The file cannot be read.
            EOFError: The file has changed.
        """
        return line_at(self.run if self.run.is_file() else self.run / file, place)

    def progress(self, sources: Sequence[Source] | None = None) -> tuple[int, int, int, int]:
        """How far it is: bytes of episodes read and there, episodes that can be searched and that are known."""
        files = sources_of(self.run) if sources is None else sources
        there = sum(one.size for one in files if one.what == "episodes")
        with self.reading() as db:
            taken, worded = db.execute(
                "SELECT sum(CASE WHEN size >= 0 THEN max(size, offset) ELSE offset END), sum(worded) FROM files"
                " WHERE what = 'episodes'"
            ).fetchone()
            (episodes,) = db.execute("SELECT count(*) FROM episodes").fetchone()
        searchable = (worded or 0) if self.searches_words else episodes
        return min(taken or 0, there), there, searchable, episodes

    def notes(self) -> list[str]:
        """What could not be read, each with its file and line."""
        with self.reading() as db:
            broken = db.execute("SELECT name, broken FROM files WHERE broken != '' ORDER BY name").fetchall()
            lines = db.execute(
                "SELECT name, line, text FROM notes JOIN files ON files.id = notes.file ORDER BY name, line LIMIT 50"
            ).fetchall()
        found = [f"{name}: {text}; what comes before it was read." for name, text in broken]
        return found + [f"{name}, line {line}: {text}; it is left out." for name, line, text in lines]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close it; what was read stays for the next time."""
        with self._filling, self._lock:
            for one in (self._reader, self._writer, self._held):
                if one is not None:
                    one.close()
            self._reader = self._writer = self._filler = self._held = None
