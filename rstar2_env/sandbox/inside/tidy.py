"""Removes a folder that an untrusted program filled, whatever its depth and the names, modes and links in it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator, Iterator

_MOST_PASSES = 100_000


def remove_tree(path: str) -> None:
    """Remove a folder with its contents, except files that permissions protect; links are not followed."""
    for _ in removal(path):
        pass


def removal(path: str) -> Iterator[None]:
    """Remove a folder step by step; each iteration of the returned iterator makes a few system calls.

    A subfolder is moved to the top of the folder before it is emptied. A deep folder therefore needs no recursion, no
    additional file descriptors and no long paths.
    """
    with contextlib.suppress(OSError):
        top = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            number = 0
            for _ in range(_MOST_PASSES):
                entries = os.listdir(top)
                for name in entries:
                    number = yield from _remove(top, name, number)
                if not entries or os.listdir(top) == entries:
                    break
        finally:
            os.close(top)
        os.rmdir(path)


def _remove(top: int, name: str, number: int) -> Generator[None, None, int]:
    """Remove the file or folder ``name`` in the folder ``top``; move its subfolders to ``top`` first.

    Moved subfolders get the names ``.to-be-removed-N``, with N above ``number``. The generator returns the last N.
    """
    yield
    with contextlib.suppress(OSError):
        os.unlink(name, dir_fd=top)
        return number
    with contextlib.suppress(OSError):
        os.chmod(name, 0o700, dir_fd=top)
    with contextlib.suppress(OSError):
        inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=top)
        try:
            for entry in os.listdir(inner):
                yield
                try:
                    os.unlink(entry, dir_fd=inner)
                except OSError:
                    number += 1
                    with contextlib.suppress(OSError):
                        os.chmod(entry, 0o700, dir_fd=inner)  # a read-only folder cannot be moved
                    with contextlib.suppress(OSError):
                        os.rename(entry, f".to-be-removed-{number}", src_dir_fd=inner, dst_dir_fd=top)
        finally:
            os.close(inner)
        os.rmdir(name, dir_fd=top)
    return number
