"""Bounds on a whole tree by frequent checks, where no control group or private file system enforces them.

An rlimit bounds one process or one file, and a program may have many. Covered: adding up a tree's memory, its tasks
and its files. Not covered: use between two checks, tens of milliseconds apart, which rlimits bound.
"""

from __future__ import annotations

import contextlib
import os

INTERVAL_S = 0.05
"""Seconds between two checks."""
MOST_FILES = 10_000
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Watch:
    """The bounds on one tree; 0 is no bound.

    Args:
        tasks: Processes and threads.
        memory: Bytes of memory, shared pages counted in shares.
        files: Bytes of files below ``workdir``.
        workdir: The working folder.
    """

    def __init__(self, tasks: int, memory: int, files: int, workdir: str) -> None:
        self._tasks = tasks
        self._memory = memory
        self._files = files
        self._workdir = workdir

    def overdrawn(self, roots: list[int]) -> str | None:
        """Name of the bound that the tree below and including ``roots`` exceeds, or ``None``."""
        if self._memory or self._tasks:
            tree = descendants(roots)
            if self._tasks and sum(map(len, tree.values())) > self._tasks:
                return "processes"
            # What each has resident is quick to read, but counts shared pages whole: if even that is little, all is
            # well.
            if self._memory and sum(map(_resident, tree)) > self._memory < sum(map(_proportional, tree)):
                return "memory"
        if self._files and _holds_more(self._workdir, self._files):
            return "files"
        return None


def descendants(roots: list[int]) -> dict[int, list[str]]:
    """The processes ``roots`` and all below them, each with its tasks."""
    found: dict[int, list[str]] = {}
    rest = list(roots)
    while rest:
        pid = rest.pop()
        with contextlib.suppress(OSError):
            found[pid] = os.listdir(f"/proc/{pid}/task")
            for task in found[pid]:
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


def _holds_more(folder: str, most: int) -> bool:
    """Whether the files below a folder take more than ``most`` bytes, or are too numerous."""
    taken = count = 0
    rest = [folder]
    while rest:
        with contextlib.suppress(OSError), os.scandir(rest.pop()) as entries:
            for entry in entries:
                count += 1
                if entry.is_dir(follow_symlinks=False):
                    rest.append(entry.path)
                else:
                    taken += entry.stat(follow_symlinks=False).st_blocks * 512
                if taken > most or count > MOST_FILES:
                    return True
    return False
