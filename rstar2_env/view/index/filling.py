"""``Filler``: fills an index from the files of a run: adds new lines, and removes the rows of deleted files.

New rows are committed together with the file offset up to which they were read. So the index is consistent after every
transaction, and a kill at any moment loses only work in progress. Not covered: when an index is filled (``run_index``).
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rstar2_env.core.errors import RecordFormatError
from rstar2_env.view.index.episode_columns import (
    EpisodeFacts,
    ProblemFacts,
    as_int,
    facts_of,
    parse_line,
    problem_of,
    searchable_text,
)
from rstar2_env.view.index.line_batches import MOST_LINE, LineBatch, read_batches
from rstar2_env.view.index.line_files import LineFile, fingerprints_of
from rstar2_env.view.index.schema import has_words

MOST_NOTES = 20
"""Maximum number of notes on unreadable content per file."""
_COMMIT_S = 0.25
_INSERT = (
    f"INSERT INTO episodes (file, line, start, at, length, problem, {', '.join(EpisodeFacts._fields)}) "
    f"VALUES ({', '.join('?' * (6 + len(EpisodeFacts._fields)))})"
)
_TOKENS = re.compile(rb'\{"step": (\d{1,18}), "group": (\d{1,18}), "member": (\d{1,18})[,}]')


class Filler:
    """Fills the index of one run; not thread-safe.

    Args:
        connection: Connection to the index, open for writing.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection
        self._has_words = has_words(connection)
        self._problems: dict[str, tuple[Any, ...]] = {}

    def fill(self, sources: Sequence[LineFile], deadline: float) -> bool:
        """Index new lines of the files, until a deadline.

        Args:
            sources: Current state of the files.
            deadline: Value of ``time.monotonic`` at which to stop.

        Returns:
            Whether all lines were indexed.
        """
        read = self._drop_lost_files(sources)
        for source in sources:
            if source.name not in read and not self._index_lines(source, deadline):
                return False
        if not self._has_words:
            return True
        wordless = {name for (name,) in self._db.execute("SELECT name FROM files WHERE texted < offset").fetchall()}
        return all(
            self._index_words(source, deadline)
            for source in sources
            if source.what == "episodes" and source.name in wordless
        )

    def _drop_lost_files(self, sources: Sequence[LineFile]) -> set[str]:
        """Drop deleted and replaced files from the index; return the names of unchanged, completely read files."""
        current = {source.name: source for source in sources}
        read = set()
        for name, inode, size, mtime, offset, head, tail in self._db.execute(
            "SELECT name, inode, size, mtime, offset, head, tail FROM files"
        ).fetchall():
            source = current.get(name)
            if source is None or source.inode != inode or source.size < offset:
                self._drop(name)
            elif (source.size, source.mtime) == (size, mtime):
                read.add(name)
            elif not _is_same(source, offset, head, tail):
                self._drop(name)
        return read

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Open a transaction; it is rolled back at the end unless it was committed."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
                self._problems.clear()

    def _drop(self, name: str) -> None:
        with self._writing():
            self._drop_rows(name)
            self._problems.clear()
            self._commit()

    def _drop_rows(self, name: str) -> None:
        (number,) = self._db.execute("SELECT id FROM files WHERE name = ?", (name,)).fetchone()
        stale = self._db.execute("SELECT worded FROM files WHERE id = ?", (number,)).fetchone()[0] or 0
        for table in ("episodes", "tokens", "notes"):
            self._db.execute(f"DELETE FROM {table} WHERE file = ?", (number,))
        self._db.execute("DELETE FROM files WHERE id = ?", (number,))
        if self._db.execute("SELECT 1 FROM files LIMIT 1").fetchone() is None:
            # The folder is empty and may be reused by another run: delete everything.
            self._db.execute("DELETE FROM problems")
            self._forget_words()
        elif stale:
            self._count_stale(stale)

    def _count_stale(self, more: int) -> None:
        """Add ``more`` to the count of stale rows in the full-text index; clear that index if most rows are stale.

        A row is stale if its episode was removed: the full-text index cannot delete single rows. A cleared full-text
        index is filled again.
        """
        stale = int(_meta(self._db, "stale") or 0) + more
        (live,) = self._db.execute("SELECT count(*) FROM episodes").fetchone()
        if stale > max(live, 1000):
            self._forget_words()
        else:
            _set_meta(self._db, "stale", stale)

    def _forget_words(self) -> None:
        if self._has_words:
            self._db.execute("INSERT INTO words (words) VALUES ('delete-all')")
        self._db.execute("UPDATE files SET texted = 0, worded = 0")
        _set_meta(self._db, "stale", 0)

    def _commit(self) -> None:
        _set_meta(self._db, "version", int(_meta(self._db, "version") or 0) + 1)
        self._db.execute("COMMIT")

    def _index_lines(self, source: LineFile, deadline: float) -> bool:
        """Index the new lines of a file; return whether all were indexed."""
        known = self._db.execute("SELECT id, offset, lines FROM files WHERE name = ?", (source.name,)).fetchone()
        if time.monotonic() > deadline:
            return False
        with self._writing():
            return self._read(source, known, deadline)

    def _read(self, source: LineFile, known: tuple[int, ...] | None, deadline: float) -> bool:
        if known is None:
            number = self._db.execute(
                "INSERT INTO files (name, what, split, step, rank, inode, offset, lines, texted, worded, broken)"
                " VALUES (?, ?, ?, ?, ?, ?, 0, 0, 0, 0, '')",
                (source.name, source.what, source.split, source.step, source.rank, source.inode),
            ).lastrowid
            offset, line = 0, 0
        else:
            number, offset, line = known
        assert number is not None
        taken, held, broken, begun = line, False, "", time.monotonic()
        try:
            for piece in read_batches(source.path, offset):
                if piece.broken:
                    broken = piece.broken
                    break
                if piece.after is None and not held:
                    self._db.execute("SAVEPOINT member")
                    held = True
                self._add(source, number, taken, piece)
                taken += len(piece.lines)
                if piece.after is None:
                    continue
                if held:
                    self._db.execute("RELEASE member")
                    held = False
                offset, line = piece.after, taken
                now = time.monotonic()
                if now - begun > _COMMIT_S or now > deadline:
                    self._save_position(source, number, offset, line, "", complete=False)
                    self._commit()
                    if now > deadline:
                        return False
                    self._db.execute("BEGIN IMMEDIATE")
                    begun = now
        except OSError as error:
            broken = f"it cannot be read ({error.strerror or error})"
        if held:
            self._db.execute("ROLLBACK TO member")
            self._db.execute("RELEASE member")
            self._problems.clear()
        self._save_position(source, number, offset, line, broken, complete=True)
        self._commit()
        return True

    def _save_position(
        self, source: LineFile, number: int, offset: int, line: int, broken: str, *, complete: bool
    ) -> None:
        head, tail = fingerprints_of(source.path, offset)
        self._db.execute(
            "UPDATE files SET size = ?, mtime = ?, offset = ?, lines = ?, head = ?, tail = ?, broken = ? WHERE id = ?",
            (source.size if complete else -1, source.mtime, offset, line, head, tail, broken, number),
        )

    def _add(self, source: LineFile, number: int, first: int, piece: LineBatch) -> None:
        rows: list[tuple[Any, ...]] = []
        for line, (place, data) in enumerate(piece.lines, first):
            try:
                if data is None:
                    raise RecordFormatError(f"the line is longer than {MOST_LINE >> 20} MiB")
                if not data.strip():
                    continue
                if source.what == "tokens":
                    rows.append((number, line, place.start, place.at, place.length, *_episode_of_tokens(data)))
                    continue
                record = parse_line(data)
                facts = facts_of(record, source.split, source.step, line)
            except (RecordFormatError, OverflowError) as error:
                self._note(number, line, str(error))
                continue
            position = (number, line, place.start, place.at, place.length)
            rows.append((*position, self._problem_id(problem_of(record)), *facts))
        if source.what == "tokens":
            self._db.executemany("INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
        else:
            self._db.executemany(_INSERT, rows)

    def _note(self, number: int, line: int, text: str) -> None:
        (count,) = self._db.execute("SELECT count(*) FROM notes WHERE file = ?", (number,)).fetchone()
        if count < MOST_NOTES:
            self._db.execute("INSERT INTO notes VALUES (?, ?, ?)", (number, line + 1, text))

    def _problem_id(self, problem: ProblemFacts) -> int:
        name = problem[0]
        known = self._problems.get(name)
        if known is not None and known[1:] == problem:
            number: int = known[0]
            return number
        if len(self._problems) > 200_000:
            self._problems.clear()
        # Fields that this episode does not contain keep their earlier values.
        self._db.execute(
            "INSERT INTO problems (name, task, source, difficulty, question, gold) VALUES (?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (name) DO UPDATE SET"
            " task = CASE excluded.task WHEN '' THEN task ELSE excluded.task END,"
            " source = CASE excluded.source WHEN '' THEN source ELSE excluded.source END,"
            " difficulty = CASE excluded.difficulty WHEN '' THEN difficulty ELSE excluded.difficulty END,"
            " question = CASE excluded.question WHEN '' THEN question ELSE excluded.question END,"
            " gold = coalesce(excluded.gold, gold)",
            problem,
        )
        (number,) = self._db.execute("SELECT id FROM problems WHERE name = ?", (name,)).fetchone()
        self._problems[name] = (number, *problem)
        return number

    def _index_words(self, source: LineFile, deadline: float) -> bool:
        """Add episodes of a file to the full-text index; return whether all were added."""
        found = self._db.execute("SELECT id, offset, texted, worded FROM files WHERE name = ?", (source.name,))
        number, offset, texted, worded = map(int, found.fetchone())
        if texted >= offset:
            return True
        if time.monotonic() > deadline:
            return False
        with self._writing(), contextlib.suppress(OSError):  # deleted or replaced: the next call handles it
            begun = time.monotonic()
            for piece in read_batches(source.path, texted):
                if piece.broken:
                    break
                # The file may have grown since: skip lines that are not in the table of episodes yet.
                worded += self._add_words(number, piece, offset)
                if piece.after is None:
                    continue
                texted, now = min(piece.after, offset), time.monotonic()
                if texted >= offset or now > deadline or now - begun > _COMMIT_S:
                    self._db.execute("UPDATE files SET texted = ?, worded = ? WHERE id = ?", (texted, worded, number))
                    self._commit()
                    if texted >= offset or now > deadline:
                        return texted >= offset
                    self._db.execute("BEGIN IMMEDIATE")
                    begun = now
        return True

    def _add_words(self, number: int, piece: LineBatch, until: int) -> int:
        rows = []
        for place, data in piece.lines:
            if place.start >= until:
                break
            found = self._db.execute(
                "SELECT id FROM episodes WHERE file = ? AND start = ? AND at = ?", (number, place.start, place.at)
            ).fetchone()
            if found is not None and data is not None:
                rows.append((found[0], searchable_text(parse_line(data))))
        self._db.executemany("INSERT INTO words (rowid, body) VALUES (?, ?)", rows)
        return len(rows)


def _is_same(source: LineFile, offset: int, head: bytes, tail: bytes) -> bool:
    """Whether the first ``offset`` bytes of a file still have the fingerprints ``head`` and ``tail``."""
    try:
        return fingerprints_of(source.path, offset) == (head, tail)
    except OSError:
        return False


def _episode_of_tokens(data: bytes) -> tuple[int, int, int]:
    """Return step, group and member of the episode that a line of tokens belongs to."""
    if found := _TOKENS.match(data):
        return int(found[1]), int(found[2]), int(found[3])
    record = parse_line(data)
    step, group, member = (as_int(record.get(name), None) for name in ("step", "group", "member"))
    if step is None or group is None or member is None:
        raise RecordFormatError("step, group and member must be whole numbers of at most 18 digits")
    return step, group, member


def _meta(connection: sqlite3.Connection, name: str) -> str | None:
    found = connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
    return None if found is None else str(found[0])


def _set_meta(connection: sqlite3.Connection, name: str, value: object) -> None:
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, str(value)))
