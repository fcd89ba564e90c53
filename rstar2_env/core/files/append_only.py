"""Append-only files of lines: append lines, and read the complete lines, even while a line is written or after a crash.

A line is complete when its newline is written. A compressed file (``.gz``) consists of gzip members. Each member is
written in one call, and is complete when its checksum is written. Not covered: the content of a line.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

from rstar2_env.core.files.full_disk import naming_full_disk

_PIECE = 1 << 14


def append_text(path: Path, text: str, *, truncate: bool = False) -> None:
    """Append complete lines to a file in one write, as one gzip member if the file's name ends in ``.gz``.

    Args:
        path: The file; its folder must exist.
        text: The lines, each with its newline.
        truncate: Whether to empty the file first.
    """
    data = text.encode("utf-8", "backslashreplace")
    with naming_full_disk(path), path.open("wb" if truncate else "ab") as file:
        file.write(gzip.compress(data, compresslevel=3, mtime=0) if path.suffix == ".gz" else data)


def whole_lines(path: Path) -> Iterator[bytes]:
    """Yield the complete lines of a file, without newlines; skip an incomplete last line. A missing file has no lines.

    An uncompressed file is read line by line.
    """
    try:
        with path.open("rb") as file:
            if path.suffix != ".gz":
                yield from (line[:-1] for line in file if line.endswith(b"\n"))
                return
            data = file.read()
    except FileNotFoundError:
        return
    for part, _ in members(data):
        yield from part.split(b"\n")[:-1]


def cut_broken_end(path: Path) -> None:
    """Remove an incomplete last line from a file, so that the next line is not joined to it."""
    if not path.exists():
        return
    data = path.read_bytes()
    ends = [end for _, end in (members(data) if path.suffix == ".gz" else lines(data))]
    whole = ends[-1] if ends else 0
    if whole < len(data):
        with path.open("r+b") as file:
            file.truncate(whole)


def lines(data: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield each complete line in ``data`` with its newline, and the position after it."""
    start = 0
    while (end := data.find(b"\n", start) + 1) > 0:
        yield data[start:end], end
        start = end


def members(data: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield each complete gzip member in ``data``, decompressed, and the position after it."""
    start = 0
    while start < len(data):
        reader, parts, position = zlib.decompressobj(wbits=31), [], start
        try:
            # Pass the data in pieces: at the end of a member, the decompressor copies all data that it did not use.
            while not reader.eof and position < len(data):
                piece = data[position : position + _PIECE]
                parts.append(reader.decompress(piece))
                position += len(piece)
        except zlib.error:
            return
        if not reader.eof:
            return
        start = position - len(reader.unused_data)
        yield b"".join(parts), start
