"""Reads files of lines that grow, from where the last reading ended, and single lines of them by their place.

What is whole is decided as ``rstar2_env.core.files.appended`` does: a line by its newline, a gzip member by its
checksum. Memory is bounded: a file is read in pieces, and a line that is longer than ``MOST_LINE`` is passed over.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

MOST_LINE = 64 << 20
"""Bytes of the longest line that is read."""
_PIECE = 1 << 16
_LINES = 256
"""Lines that are handed over at once, at most."""
_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Place:
    """Where a line stands in its file.

    Attributes:
        start: Offset in the file of the gzip member that holds it; of a plain file, of the line itself.
        at: Offset in the decompressed member; of a plain file 0.
        length: Its bytes, without its newline.
    """

    start: int
    at: int
    length: int


@dataclass(frozen=True, slots=True)
class Piece:
    """Some lines.

    Attributes:
        lines: Each with its place; ``None`` for one that is too long to be read.
        after: Offset in the file after which reading may go on; ``None`` while a gzip member has not ended, so that
            its lines do not count yet.
        broken: Why reading cannot go on, if it cannot: what follows in the file is damaged.
    """

    lines: list[tuple[Place, bytes | None]]
    after: int | None
    broken: str = ""


def grown(path: Path, start: int) -> Iterator[Piece]:
    """Every line of a file from an offset on, in pieces; a broken end is left out.

    Args:
        path: The file; with the suffix ``.gz`` it is gzip.
        start: Where to begin: 0, or ``after`` of an earlier piece.

    Raises:
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        file.seek(start)
        yield from _members(file, start) if path.suffix == ".gz" else _plain(file, start)


def line_at(path: Path, place: Place) -> bytes:
    """A line by its place.

    Raises:
        OSError: The file cannot be read.
        EOFError: The file is shorter or damaged by now.
    """
    with path.open("rb") as file:
        file.seek(place.start)
        found = _inside(file, place) if path.suffix == ".gz" else file.read(place.length)
    if len(found) != place.length:
        raise EOFError(f"{path} ends before its line.")
    return found


def _inside(file: IO[bytes], place: Place) -> bytes:
    """The bytes of a place in the gzip member that the file stands at; what comes before them is not kept."""
    reader, position, parts, wanted = zlib.decompressobj(wbits=31), 0, bytearray(), place.at + place.length
    while position < wanted and not reader.eof:
        raw = reader.unconsumed_tail or file.read(_PIECE)
        try:
            part = reader.decompress(raw, _PIECE * 16)
        except zlib.error as error:
            raise EOFError(f"A damaged gzip member: {error}.") from error
        if not raw and not part:
            break
        parts += part[max(place.at - position, 0) : max(wanted - position, 0)]
        position += len(part)
    return bytes(parts)


def _plain(file: IO[bytes], start: int) -> Iterator[Piece]:
    lines: list[tuple[Place, bytes | None]] = []
    held = 0
    while True:
        line = file.readline(MOST_LINE)
        length = len(line)
        if length == MOST_LINE and not line.endswith(b"\n"):
            rest = line
            while rest and not rest.endswith(b"\n"):
                rest = file.readline(_PIECE)
                length += len(rest)
            if not rest:
                break
            lines.append((Place(start, 0, length - 1), None))
        elif not line.endswith(b"\n"):
            break
        else:
            lines.append((Place(start, 0, length - 1), line[:-1]))
            held += length
        start += length
        if len(lines) >= _LINES or held >= _BYTES:
            yield Piece(lines, start)
            lines, held = [], 0
    if lines:
        yield Piece(lines, start)


class _Splitter:
    """Splits the text of one gzip member into lines with their places."""

    def __init__(self, start: int) -> None:
        self._start, self._at, self._rest, self._skipped = start, 0, bytearray(), 0
        self.lines: list[tuple[Place, bytes | None]] = []
        self.held = 0

    def add(self, part: bytes) -> None:
        begin = 0
        while (end := part.find(b"\n", begin)) >= 0:
            if self._skipped:
                length = self._skipped + end - begin
                self.lines.append((Place(self._start, self._at, length), None))
            else:
                line = bytes(self._rest) + part[begin:end]
                length = len(line)
                self.lines.append((Place(self._start, self._at, length), line))
                self.held += length
            self._at += length + 1
            self._rest.clear()
            self._skipped, begin = 0, end + 1
        if self._skipped or len(self._rest) + len(part) - begin > MOST_LINE:
            self._skipped += len(self._rest) + len(part) - begin
            self._rest.clear()
        else:
            self._rest += part[begin:]

    def take(self) -> list[tuple[Place, bytes | None]]:
        taken, self.lines, self.held = self.lines, [], 0
        return taken


def _members(file: IO[bytes], start: int) -> Iterator[Piece]:
    """The lines of gzip members, one after the other; the last piece of each says where it ends."""
    rest = b""
    while True:
        reader, splitter, read = zlib.decompressobj(wbits=31), _Splitter(start), 0
        while not reader.eof:
            raw = reader.unconsumed_tail or rest or file.read(_PIECE)
            if raw is rest:
                rest = b""
            try:
                part = reader.decompress(raw, _PIECE * 16)
            except zlib.error as error:
                yield Piece([], None, f"the gzip member at byte {start} is damaged ({error})")
                return
            if not raw and not part and not reader.eof:
                return  # not finished yet, or broken off by a kill
            splitter.add(part)
            read += len(raw) - len(reader.unconsumed_tail) - len(reader.unused_data)
            if len(splitter.lines) >= _LINES or splitter.held >= _BYTES:
                yield Piece(splitter.take(), None)
        start += read
        yield Piece(splitter.take(), start)
        rest = reader.unused_data or b""
        if not rest:
            rest = file.read(_PIECE)
            if not rest:
                return
