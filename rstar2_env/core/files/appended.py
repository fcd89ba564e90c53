"""Files of lines that only grow: what of them is whole, also while they are written and after a crash.

A line is whole once its newline is there. In a compressed file (``.gz``) lines come in gzip members, each written at
once and whole once its checksum is there. Not covered: what a line holds.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

_PIECE = 1 << 14


def append_text(path: Path, text: str, *, anew: bool = False) -> None:
    """Append whole lines in one write; a name that ends in ``.gz`` gets them as one gzip member.

    Args:
        path: The file; its folder must exist.
        text: The lines, each with its newline.
        anew: Empty the file first.
    """
    data = text.encode("utf-8", "backslashreplace")
    with path.open("wb" if anew else "ab") as file:
        file.write(gzip.compress(data, compresslevel=3, mtime=0) if path.suffix == ".gz" else data)


def whole_lines(path: Path) -> Iterator[bytes]:
    """Every whole line of a file, without its newline; a broken end is left out, a file that is not there is empty.

    A file that is not compressed is read line by line.
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
    """Cut off what is not whole, so that the next line begins on a line of its own."""
    if not path.exists():
        return
    data = path.read_bytes()
    ends = [end for _, end in (members(data) if path.suffix == ".gz" else lines(data))]
    whole = ends[-1] if ends else 0
    if whole < len(data):
        with path.open("r+b") as file:
            file.truncate(whole)


def lines(data: bytes) -> Iterator[tuple[bytes, int]]:
    """Each whole line, its newline included, and where it ends."""
    start = 0
    while (end := data.find(b"\n", start) + 1) > 0:
        yield data[start:end], end
        start = end


def members(data: bytes) -> Iterator[tuple[bytes, int]]:
    """Each whole gzip member, decompressed, and where it ends."""
    start = 0
    while start < len(data):
        reader, parts, position = zlib.decompressobj(wbits=31), [], start
        try:
            # In pieces: given everything at once it would copy the rest of the file for every member.
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
