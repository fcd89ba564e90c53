"""Bounds on a whole tree by frequent checks, where no control group or private file system enforces them.

An rlimit bounds one process or one file, and a program may have many. Covered: adding up a tree's memory, what the
kernel may hold for its sockets, its tasks, and its files, with those that have no name any more but are open or mapped.
A check reads for a bounded time and goes on where it stopped, since a program decides how long its processes take to
read. Not covered: use between two checks, tens of milliseconds apart, which rlimits bound.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Callable, Iterable

INTERVAL_S = 0.05
"""Seconds between two checks."""
MOST_FILES = 10_000
_BUDGET_S = 0.01
"""Seconds that one check may spend on the memory of one tree."""
_SOCKET_BYTES = 320 << 10
"""What the kernel may hold for one end of a pair of sockets with the default buffer, and a message beyond it."""
_MOST_MAPS = 1 << 21
_UNKNOWN = 1 << 40
"""Bytes for what cannot be measured: more than any bound."""
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Watch:
    """The bounds on one tree; 0 is no bound.

    Args:
        tasks: Processes and threads.
        memory: Bytes of memory, shared pages counted in shares.
        files: Bytes of files below ``workdir``.
        workdir: The working folder.
        own_net: Whether the tree has a network namespace of its own, which shows sockets in flight too.
    """

    def __init__(self, tasks: int, memory: int, files: int, workdir: str, own_net: bool = False) -> None:
        self._tasks = tasks
        self._memory = memory
        self._files = files
        self._workdir = workdir
        self._own_net = own_net
        self._shares = _Tally(_proportional)
        self._nameless = _Tally(_nameless)

    def overdrawn(self, roots: list[int]) -> str | None:
        """Name of the bound that the tree below and including ``roots`` exceeds, or ``None``."""
        tree = descendants(roots) if self._memory or self._tasks or self._files else {}
        if self._tasks and sum(map(len, tree.values())) > self._tasks:
            return "processes"
        if self._memory and self._takes_more(tree):
            return "memory"
        if self._files and self._holds_more(tree):
            return "files"
        return None

    def _takes_more(self, tree: dict[int, list[str]]) -> bool:
        room = self._memory - _SOCKET_BYTES * self._sockets(tree)
        # What each has resident is quick to read, but counts shared pages whole: if even that is little, all is well.
        return room < 0 or (room < sum(map(_resident, tree)) and room < self._shares.total(tree))

    def _sockets(self, tree: dict[int, list[str]]) -> int:
        if self._own_net:
            for pid in tree:
                with contextlib.suppress(OSError), open(f"/proc/{pid}/net/unix", "rb") as file:
                    return sum(1 for _ in file) - 1
        return len({link for pid in tree for link in _links(pid) if link.startswith("socket:")})

    def _holds_more(self, tree: dict[int, list[str]]) -> bool:
        room = self._files - self._nameless.total(tree)
        return room < 0 or _folder_holds_more(self._workdir, room)


class _Tally:
    """Adds up what the processes of a tree hold, over several checks where one has not the time for all of them.

    Args:
        read: What one process holds: bytes, by what identifies them among all processes.
    """

    def __init__(self, read: Callable[[int], dict[int, int]]) -> None:
        self._read = read
        self._found: dict[int, dict[int, int]] = {}

    def total(self, tree: Iterable[int]) -> int:
        """Bytes that are held by the processes that were read since all had been."""
        until = time.monotonic() + _BUDGET_S
        missing = [pid for pid in tree if pid not in self._found]
        for at, pid in enumerate(missing):
            if at and time.monotonic() > until:
                break
            self._found[pid] = self._read(pid)
        held: dict[int, int] = {}
        for pid in tree:
            held |= self._found.get(pid, {})
        if all(pid in self._found for pid in missing):
            self._found = {}
        return sum(held.values())


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


def _proportional(pid: int) -> dict[int, int]:
    """Bytes of memory, by the number of the process."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            lines = [line for line in file if line.startswith((b"Pss_Anon:", b"Pss_Shmem:"))]
        return {pid: sum(int(line.split()[1]) << 10 for line in lines)}
    except (OSError, IndexError):
        return {pid: _resident(pid)}


def _links(pid: int) -> list[str]:
    """What the descriptors of a process are, as the kernel names it."""
    found = []
    with contextlib.suppress(OSError):
        for number in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                found.append(os.readlink(f"/proc/{pid}/fd/{number}"))
    return found


def _nameless(pid: int) -> dict[int, int]:
    """The files without a name that a process holds, by open descriptors or mapped: bytes by inode number."""
    found: dict[int, int] = {}
    with contextlib.suppress(OSError), open(f"/proc/{pid}/maps", "rb") as file:
        lines = file.read(_MOST_MAPS).splitlines()
        for line in lines:
            if line.endswith(b" (deleted)") and not line.split(maxsplit=5)[5].startswith((b"/dev/zero", b"/memfd:")):
                found[int(line.split(maxsplit=5)[4])] = _UNKNOWN  # its size cannot be read unless it is open too
        if file.read(1):
            found[-1] = _UNKNOWN  # no benign program has so many mappings, and any file may be among them
    with contextlib.suppress(OSError):
        for number in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                status = os.stat(f"/proc/{pid}/fd/{number}")
                if status.st_nlink or not stat.S_ISREG(status.st_mode):
                    continue
                if not os.readlink(f"/proc/{pid}/fd/{number}").startswith("/memfd:"):  # its standard input
                    found[status.st_ino] = status.st_blocks * 512
    return found


def _folder_holds_more(folder: str, most: int) -> bool:
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
