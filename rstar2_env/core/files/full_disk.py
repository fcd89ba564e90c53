"""Converts the different errors that libraries raise on a full disk to one error with the path and a suggested fix."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from rstar2_env.core.errors import DiskFullError

_NUMBERS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_TEXTS = (
    "no space left on device",
    "disk quota exceeded",
    "file too large",
    "os error 28",
    "code: 28",
    "os error 27",
    "code: 27",
    "os error 122",
    "code: 122",
    "disk is full",  # SQLite
    "pytorchstreamwriter failed writing",
)
"""Parts of messages by which full-disk errors of safetensors, tokenizers, SQLite and torch are recognized."""


def is_disk_full(error: BaseException) -> bool:
    """Whether an error, or the error that caused it, reports a full disk, an exhausted quota or ``ulimit -f``."""
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        if isinstance(at, DiskFullError) or (isinstance(at, OSError) and at.errno in _NUMBERS):
            return True
        if not isinstance(at, OSError) and any(text in str(at).lower() for text in _TEXTS):
            return True
        at = at.__cause__ or at.__context__
    return False


@contextmanager
def naming_full_disk(path: str | os.PathLike[str]) -> Iterator[None]:
    """Within the ``with`` block, convert full-disk errors to a ``DiskFullError`` that names the path."""
    try:
        yield
    except DiskFullError:
        raise
    except Exception as error:
        if not is_disk_full(error):
            raise
        raise DiskFullError(path) from error
