"""Linux system calls that Python has no function for, through ``ctypes``.

Elsewhere than on Linux every function here does nothing, or says that there is nothing.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

IS_LINUX = sys.platform == "linux"
_libc = ctypes.CDLL(None, use_errno=True) if IS_LINUX else None


def prctl(option: int, *arguments: int) -> int:
    """Call ``prctl``.

    Raises:
        OSError: It failed.
    """
    if _libc is None:
        return 0
    padded = [ctypes.c_ulong(value) for value in (*arguments, 0, 0, 0, 0)[:4]]
    result = int(_libc.prctl(ctypes.c_int(option), *padded))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def die_with_parent() -> None:
    """Ask the kernel for SIGKILL when the thread that started this process ends."""
    prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))


def become_subreaper() -> None:
    """Become the parent of descendants whose own parent ends."""
    prctl(_PR_SET_CHILD_SUBREAPER, 1)


def children() -> list[int]:
    """Process ids of this process's children; empty where the kernel does not list them."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", "rb") as file:
            return [int(pid) for pid in file.read().split()]
    except OSError:
        return []
