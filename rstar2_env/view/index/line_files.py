"""Lists the files that an index is built from, and computes fingerprints that detect replaced files."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.run_folder.inside import inside
from rstar2_env.core.run_folder.layout import EPISODES, TOKENS, step_files

_PRINT = 1024
"""Maximum number of bytes that a fingerprint covers, at the beginning or at the end of the content read so far."""
_INTEGER = 2**63 - 1
"""The largest integer that SQLite can store."""


@dataclass(frozen=True, slots=True)
class LineFile:
    """One file of episodes or tokens.

    Attributes:
        path: The file.
        name: Name within the run: ``episodes/train-000003.jsonl.gz``.
        what: ``episodes`` or ``tokens``.
        split: ``train`` or ``eval``.
        step: Training step of the file.
        rank: Number of the process that wrote the file.
        inode: Lower 63 bits of the inode number: SQLite integers have 63 bits and a sign, some file systems use all 64.
        size: Size in bytes.
        mtime: Time of the last modification, in ns.
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


def line_files_of(run: Path) -> list[LineFile]:
    """Return a run's files of episodes and of tokens: episodes before tokens, newest steps first."""
    if run.is_file():
        found = _source(run, run, run.name, "episodes", "eval", 0, 0)
        return [found] if found else []
    sources = []
    for what in (EPISODES, TOKENS):
        named: dict[tuple[str, int, int], LineFile] = {}
        for file in step_files(run / what):
            found = _source(run, file.path, f"{what}/{file.path.name}", what, file.split, file.step, file.rank)
            if found:
                # Keep only one of a file and its compressed form, or every episode would appear twice.
                named.setdefault((file.split, file.step, file.rank), found)
        sources += sorted(named.values(), key=lambda file: (-file.step, file.split, file.rank))
    return sources


def _source(run: Path, path: Path, name: str, what: str, split: str, step: int, rank: int) -> LineFile | None:
    try:
        inode, size, mtime = file_state(path, run)
    except OSError:
        return None  # deleted in the meantime
    return LineFile(path, name, what, split, step, rank, inode & _INTEGER, size, mtime)


def file_state(path: Path, run: Path) -> tuple[int, int, int]:
    """Return a file's inode, its size in bytes, and the time of its last modification in ns.

    Raises:
        OSError: The file does not exist or cannot be read, is not a file, or leads out of the run by a link.
    """
    stat = path.lstat()
    if not S_ISREG(stat.st_mode) or path.parent.is_symlink():
        try:
            stat = inside(run, path).stat()
        except ConfigurationError as error:
            raise OSError(str(error)) from error
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


def fingerprints_of(path: Path, offset: int) -> tuple[bytes, bytes]:
    """Return digests of the beginning and of the end of a file's first ``offset`` bytes.

    Raises:
        OSError: The file cannot be read.
    """
    with path.open("rb") as file:
        head = file.read(min(_PRINT, offset))
        file.seek(max(offset - _PRINT, 0))
        tail = file.read(min(_PRINT, offset))
    return _digest(head), _digest(tail)


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=12).digest()
