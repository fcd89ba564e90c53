"""The files of lines that an index is made of, and whether one is still the file that was read."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from rstar2_env.core.run_folder.layout import EPISODES, TOKENS, step_files

_PRINT = 1024
"""Bytes at the beginning and before the end of what was read, by which a file is known again."""
_INTEGER = 2**63 - 1
"""The largest integer of SQLite."""


@dataclass(frozen=True, slots=True)
class Source:
    """One file of episodes or tokens.

    Attributes:
        path: The file.
        name: Its name in the run: ``episodes/train-000003.jsonl.gz``.
        what: ``episodes`` or ``tokens``.
        split: ``train`` or ``eval``.
        step: Its step.
        rank: The process that wrote it.
        inode: Number of the file, its 63 lower bits: SQLite has no larger integers, and some file systems use all 64.
        size: Its bytes.
        mtime: When it was written last, in ns.
    """

    path: Path
    name: str
    what: str
    split: str
    step: int
    rank: int
    inode: int
    size: int
    mtime: int


def sources_of(run: Path) -> list[Source]:
    """The files of a run, those of episodes first, the newest steps first; of an evaluation's single file itself."""
    if run.is_file():
        found = _source(run, run.name, "episodes", "eval", 0, 0)
        return [found] if found else []
    sources = []
    for what in (EPISODES, TOKENS):
        named: dict[tuple[str, int, int], Source] = {}
        for file in step_files(run / what):
            found = _source(file.path, f"{what}/{file.path.name}", what, file.split, file.step, file.rank)
            if found:
                # Of a file beside its compressed form one is left over; two would show every episode twice.
                named.setdefault((file.split, file.step, file.rank), found)
        sources += sorted(named.values(), key=lambda one: (-one.step, one.split, one.rank))
    return sources


def _source(path: Path, name: str, what: str, split: str, step: int, rank: int) -> Source | None:
    try:
        stat = path.stat()
    except OSError:
        return None  # removed in between
    return Source(path, name, what, split, step, rank, stat.st_ino & _INTEGER, stat.st_size, stat.st_mtime_ns)


def prints_of(path: Path, offset: int) -> tuple[bytes, bytes]:
    """Digests of the beginning and of the end of the first ``offset`` bytes of a file.

    Raises:
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        head = file.read(min(_PRINT, offset))
        file.seek(max(offset - _PRINT, 0))
        tail = file.read(min(_PRINT, offset))
    return _digest(head), _digest(tail)


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=12).digest()
