"""Fills an index from a run's files: what is new in each, and out with what is no longer there.

Every transaction leaves an index that tells the truth about a part of each file: rows and the offset up to which they
reach are committed together, so that a kill at any moment costs nothing but work. Not covered: when it is called
(``run_index``).
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
from rstar2_env.view.index.facts import COLUMNS, facts_of, parsed, whole, words_of
from rstar2_env.view.index.growing import MOST_LINE, Piece, grown
from rstar2_env.view.index.schema import has_words
from rstar2_env.view.index.sources import Source, prints_of

MOST_NOTES = 20
"""Notes that are kept of one file."""
_COMMIT_S = 0.25
_INSERT = (
    f"INSERT INTO episodes (file, line, start, at, length, problem, {', '.join(COLUMNS)}) "
    f"VALUES ({', '.join('?' * (6 + len(COLUMNS)))})"
)
_TOKENS = re.compile(rb'\{"step": (\d{1,18}), "group": (\d{1,18}), "member": (\d{1,18})[,}]')


class Filler:
    """Fills the index of one run; one at a time.

    Args:
        connection: The index, open for writing.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection
        self._has_words = has_words(connection)
        self._problems: dict[str, tuple[Any, ...]] = {}

    def fill(self, sources: Sequence[Source], deadline: float) -> bool:
        """Take over what is new, for a while.

        Args:
            sources: The files as they are now.
            deadline: Reading of ``time.monotonic`` at which to stop.

        Returns:
            Whether everything was taken over.
        """
        read = self._drop_lost(sources)
        for source in sources:
            if source.name not in read and not self._take(source, deadline):
                return False
        if not self._has_words:
            return True
        wordless = {name for (name,) in self._db.execute("SELECT name FROM files WHERE texted < offset").fetchall()}
        return all(
            self._words(source, deadline) for source in sources if source.what == "episodes" and source.name in wordless
        )

    def _drop_lost(self, sources: Sequence[Source]) -> set[str]:
        """Take out files that are gone, or are others than those that were read; returns those read to their end."""
        there = {source.name: source for source in sources}
        read = set()
        for name, inode, size, mtime, offset, head, tail in self._db.execute(
            "SELECT name, inode, size, mtime, offset, head, tail FROM files"
        ).fetchall():
            source = there.get(name)
            if source is None or source.inode != inode or source.size < offset:
                self._drop(name)
            elif (source.size, source.mtime) == (size, mtime):
                read.add(name)
            elif not _is_same(source, offset, head, tail):
                self._drop(name)
        return read

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """A transaction; what is not committed at its end is taken back."""
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
            # Another run may begin in the folder: nothing of this one is left.
            self._db.execute("DELETE FROM problems")
            self._forget_words()
        elif stale:
            self._count_stale(stale)

    def _count_stale(self, more: int) -> None:
        """Words cannot be taken out one by one; once most are of episodes that are gone, they are made anew."""
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

    def _take(self, source: Source, deadline: float) -> bool:
        """Take over the lines of a file that are new; returns whether there are no more."""
        known = self._db.execute("SELECT id, offset, lines FROM files WHERE name = ?", (source.name,)).fetchone()
        if time.monotonic() > deadline:
            return False
        with self._writing():
            return self._read(source, known, deadline)

    def _read(self, source: Source, known: tuple[int, ...] | None, deadline: float) -> bool:
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
            for piece in grown(source.path, offset):
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
                    self._note_place(source, number, offset, line, "", whole=False)
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
        self._note_place(source, number, offset, line, broken, whole=True)
        self._commit()
        return True

    def _note_place(self, source: Source, number: int, offset: int, line: int, broken: str, *, whole: bool) -> None:
        head, tail = prints_of(source.path, offset)
        self._db.execute(
            "UPDATE files SET size = ?, mtime = ?, offset = ?, lines = ?, head = ?, tail = ?, broken = ? WHERE id = ?",
            (source.size if whole else -1, source.mtime, offset, line, head, tail, broken, number),
        )

    def _add(self, source: Source, number: int, first: int, piece: Piece) -> None:
        rows = []
        for line, (place, data) in enumerate(piece.lines, first):
            try:
                if data is None:
                    raise RecordFormatError(f"it is longer than {MOST_LINE >> 20} MiB")
                if not data.strip():
                    continue
                if source.what == "tokens":
                    rows.append((number, line, place.start, place.at, place.length, *_token_place(data)))
                    continue
                facts = facts_of(parsed(data), source.split, source.step, line)
            except (RecordFormatError, OverflowError) as error:
                self._note(number, line, str(error))
                continue
            place_of = (number, line, place.start, place.at, place.length)
            rows.append((*place_of, self._problem(facts.problem), *facts.values))
        if source.what == "tokens":
            self._db.executemany("INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
        else:
            self._db.executemany(_INSERT, rows)

    def _note(self, number: int, line: int, text: str) -> None:
        (there,) = self._db.execute("SELECT count(*) FROM notes WHERE file = ?", (number,)).fetchone()
        if there < MOST_NOTES:
            self._db.execute("INSERT INTO notes VALUES (?, ?, ?)", (number, line + 1, text))

    def _problem(self, told: tuple[str, str, str, str, str, str | None]) -> int:
        name = told[0]
        known = self._problems.get(name)
        if known is not None and known[1:] == told:
            number: int = known[0]
            return number
        if len(self._problems) > 200_000:
            self._problems.clear()
        # What an episode does not say stays as another said it.
        self._db.execute(
            "INSERT INTO problems (name, task, source, difficulty, question, gold) VALUES (?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (name) DO UPDATE SET"
            " task = CASE excluded.task WHEN '' THEN task ELSE excluded.task END,"
            " source = CASE excluded.source WHEN '' THEN source ELSE excluded.source END,"
            " difficulty = CASE excluded.difficulty WHEN '' THEN difficulty ELSE excluded.difficulty END,"
            " question = CASE excluded.question WHEN '' THEN question ELSE excluded.question END,"
            " gold = coalesce(excluded.gold, gold)",
            told,
        )
        (number,) = self._db.execute("SELECT id FROM problems WHERE name = ?", (name,)).fetchone()
        self._problems[name] = (number, *told)
        return number

    def _words(self, source: Source, deadline: float) -> bool:
        """Take over the words of a file's episodes that are not searchable yet; returns whether there are no more."""
        found = self._db.execute("SELECT id, offset, texted, worded FROM files WHERE name = ?", (source.name,))
        number, offset, texted, worded = map(int, found.fetchone())
        if texted >= offset:
            return True
        if time.monotonic() > deadline:
            return False
        with self._writing(), contextlib.suppress(OSError):  # gone or replaced: the next call sees that
            begun = time.monotonic()
            for piece in grown(source.path, texted):
                if piece.broken:
                    break
                # The file may have grown since its lines were taken: words of lines that are no episodes yet wait.
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

    def _add_words(self, number: int, piece: Piece, until: int) -> int:
        rows = []
        for place, data in piece.lines:
            if place.start >= until:
                break
            found = self._db.execute(
                "SELECT id FROM episodes WHERE file = ? AND start = ? AND at = ?", (number, place.start, place.at)
            ).fetchone()
            if found is not None and data is not None:
                rows.append((found[0], words_of(parsed(data))))
        self._db.executemany("INSERT INTO words (rowid, body) VALUES (?, ?)", rows)
        return len(rows)


def _is_same(source: Source, offset: int, head: bytes, tail: bytes) -> bool:
    """Whether a file still begins with what was read of it."""
    try:
        return prints_of(source.path, offset) == (head, tail)
    except OSError:
        return False


def _token_place(data: bytes) -> tuple[int, int, int]:
    if found := _TOKENS.match(data):
        return int(found[1]), int(found[2]), int(found[3])
    record = parsed(data)
    step, group, member = (whole(record.get(name), None) for name in ("step", "group", "member"))
    if step is None or group is None or member is None:
        raise RecordFormatError("it has no step, group and member: whole numbers of at most 18 digits")
    return step, group, member


def _meta(connection: sqlite3.Connection, name: str) -> str | None:
    found = connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
    return None if found is None else str(found[0])


def _set_meta(connection: sqlite3.Connection, name: str, value: object) -> None:
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, str(value)))
