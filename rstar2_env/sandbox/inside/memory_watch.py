"""Bounding a whole tree's memory where no control group can: the warm parent looks at it many times a second.

An rlimit bounds each process alone, and a program may start as many as its limit on processes allows. Covered: summing
up a tree. Not covered: what it takes between two looks (tens of milliseconds), which the rlimit on each process bounds.
"""

from __future__ import annotations

import contextlib
import os

INTERVAL_MS = 50
_PAGE = os.sysconf("SC_PAGE_SIZE")


def exceeds(roots: list[int], limit: int) -> bool:
    """Whether the processes below and including ``roots`` hold more than ``limit`` bytes, shared pages in shares."""
    pids = descendants(roots)
    # What each has resident is quick to read, but counts pages that all share: if even that is little, all is well.
    if sum(map(_resident, pids)) <= limit:
        return False
    return sum(map(_proportional, pids)) > limit


def descendants(roots: list[int]) -> list[int]:
    """The processes ``roots`` and all below them."""
    found: list[int] = []
    rest = list(roots)
    while rest:
        pid = rest.pop()
        found.append(pid)
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{task}/children", "rb") as file:
                    rest += map(int, file.read().split())
    return found


def _resident(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0


def _proportional(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            return sum(int(line.split()[1]) << 10 for line in file if line.startswith((b"Pss_Anon:", b"Pss_Shmem:")))
    except (OSError, IndexError):
        return _resident(pid)
