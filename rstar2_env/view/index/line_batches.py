"""Reads append-only files: new lines from an offset on, and single lines by their position.

A line is complete if it ends with a newline; a gzip member is complete if its checksum is valid (as in
``rstar2_env.core.files.append_only``). Memory is bounded: a file is read in batches, and lines longer than
``MOST_LINE`` are skipped.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

MOST_LINE = 64 << 20
"""Maximum length of a line, in bytes; longer lines are skipped."""
_PIECE = 1 << 16
_LINES = 256
"""Maximum number of lines in a batch."""
_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class LinePosition:
    """Position of a line in its file.

    Attributes:
        start: File offset of the line; in a compressed file, the offset of the gzip member that contains the line.
        at: Offset in the decompressed member; 0 in a plain file.
        length: Bytes of the line, without the newline.
    """

    start: int
    at: int
    length: int


@dataclass(frozen=True, slots=True)
class LineBatch:
    """Consecutive lines of a file.

    Attributes:
        lines: Position and content of each line; ``None`` instead of the content of a line that is too long.
        after: File offset from which reading can continue; ``None`` inside a gzip member, whose lines are valid only
            after the end of the member was read.
        broken: Description of damage that prevents further reading; empty if there is none.
    """

    lines: list[tuple[LinePosition, bytes | None]]
    after: int | None
    broken: str = ""


def read_batches(path: Path, start: int) -> Iterator[LineBatch]:
    """Yield the lines of a file from an offset on, in batches; an incomplete line or gzip member at the end is omitted.

    Args:
        path: The file; with the suffix ``.gz`` it is read as gzip.
        start: Offset to start from: 0, or ``after`` of an earlier batch.

    Raises:
        OSError: The file cannot be read.
    """
    with path.open("rb") as file:
        file.seek(start)
        yield from _members(file, start) if path.suffix == ".gz" else _plain(file, start)


def line_at(path: Path, place: LinePosition) -> bytes:
    """Return a line by its position.

    Raises:
        OSError: The file cannot be read.
        EOFError: The file has become shorter or is damaged.
    """
    with path.open("rb") as file:
        file.seek(place.start)
        found = _inside(file, place) if path.suffix == ".gz" else file.read(place.length)
    if len(found) != place.length:
        raise EOFError(f"The file {path} ends before the requested line.")
    return found


def _inside(file: IO[bytes], place: LinePosition) -> bytes:
    """Return the bytes at ``place`` from the gzip member that starts at the current file offset."""
    reader, position, parts, wanted = zlib.decompressobj(wbits=31), 0, bytearray(), place.at + place.length
    while position < wanted and not reader.eof:
        raw = reader.unconsumed_tail or file.read(_PIECE)
        try:
            part = reader.decompress(raw, _PIECE * 16)
        except zlib.error as error:
            raise EOFError(f"The compressed data is damaged: {error}.") from error
        if not raw and not part:
            break
        parts += part[max(place.at - position, 0) : max(wanted - position, 0)]
        position += len(part)
    return bytes(parts)


def _plain(file: IO[bytes], start: int) -> Iterator[LineBatch]:
    lines: list[tuple[LinePosition, bytes | None]] = []
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
            lines.append((LinePosition(start, 0, length - 1), None))
        elif not line.endswith(b"\n"):
            break
        else:
            lines.append((LinePosition(start, 0, length - 1), line[:-1]))
            held += length
        start += length
        if len(lines) >= _LINES or held >= _BYTES:
            yield LineBatch(lines, start)
            lines, held = [], 0
    if lines:
        yield LineBatch(lines, start)


class _Splitter:
    """Splits the text of one gzip member into lines with their positions."""

    def __init__(self, start: int) -> None:
        self._start, self._at, self._rest, self._skipped = start, 0, bytearray(), 0
        self.lines: list[tuple[LinePosition, bytes | None]] = []
        self.held = 0

    def add(self, part: bytes) -> None:
        begin = 0
        while (end := part.find(b"\n", begin)) >= 0:
            if self._skipped:
                length = self._skipped + end - begin
                self.lines.append((LinePosition(self._start, self._at, length), None))
            else:
                line = bytes(self._rest) + part[begin:end]
                length = len(line)
                self.lines.append((LinePosition(self._start, self._at, length), line))
                self.held += length
            self._at += length + 1
            self._rest.clear()
            self._skipped, begin = 0, end + 1
        if self._skipped or len(self._rest) + len(part) - begin > MOST_LINE:
            self._skipped += len(self._rest) + len(part) - begin
            self._rest.clear()
        else:
            self._rest += part[begin:]

    def take(self) -> list[tuple[LinePosition, bytes | None]]:
        taken, self.lines, self.held = self.lines, [], 0
        return taken


def _members(file: IO[bytes], start: int) -> Iterator[LineBatch]:
    """Yield the lines of gzip members from the offset ``start`` on; only a member's last batch has an ``after``."""
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
                yield LineBatch([], None, f"the compressed data (gzip) at byte {start} is damaged ({error})")
                return
            if not raw and not part and not reader.eof:
                return  # still being written, or interrupted by a kill
            splitter.add(part)
            read += len(raw) - len(reader.unconsumed_tail) - len(reader.unused_data)
            if len(splitter.lines) >= _LINES or splitter.held >= _BYTES:
                yield LineBatch(splitter.take(), None)
        start += read
        yield LineBatch(splitter.take(), start)
        rest = reader.unused_data or b""
        if not rest:
            rest = file.read(_PIECE)
            if not rest:
                return
