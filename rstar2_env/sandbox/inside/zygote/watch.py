"""Limits a process tree by frequent checks, if no control group or private file system enforces the limits.

An rlimit applies to one process or one file, but a program can have many processes and files. Covered: a tree's total
memory, including kernel memory of its sockets; its tasks (threads); its pipes; and its files, including unnamed ones
that are open or mapped. A check has a bounded duration and continues where the previous one stopped, since a program
can make its processes slow to read. Not covered: peaks between two checks, tens of milliseconds apart; only rlimits
bound these peaks.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Callable, Iterable

INTERVAL_S = 0.05
"""Seconds between two checks of a process tree."""
MOST_FILES = 10_000
_BUDGET_S = 0.01
"""Largest duration of one check of one tree, in seconds."""
_SOCKET_BYTES = 320 << 10
"""Most kernel memory that one end of a socket pair uses with the default buffer: the buffer and one more message."""
_MOST_MAPS = 1 << 21
_UNKNOWN = 1 << 40
"""Size in bytes assumed for files that cannot be measured: more than any limit."""
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Watch:
    """Limits on one process tree, enforced by periodic checks; 0 means unlimited.

    Args:
        tasks: Maximum number of processes and threads.
        memory: Maximum bytes of memory: anonymous and shared memory (shared pages count proportionally), and the kernel
            memory of sockets.
        files: Maximum bytes of files below ``workdir``.
        workdir: The working folder.
        own_net: Whether the tree has its own network namespace. Its sockets are then counted in the namespace's list,
            which includes sockets in transit between processes.
        pipes: Maximum number of pipes. The kernel counts the memory of pipes for each user, and creates small pipes for
            a user that has many.
    """

    def __init__(
        self, tasks: int, memory: int, files: int, workdir: str, own_net: bool = False, pipes: int = 0
    ) -> None:
        self._tasks = tasks
        self._memory = memory
        self._files = files
        self._workdir = workdir
        self._own_net = own_net
        self._most_pipes = pipes
        self._pipes = _TreeSum(_pipes)
        self._shares = _TreeSum(_proportional)
        self._nameless = _TreeSum(_nameless)

    def overdrawn(self, roots: list[int]) -> str | None:
        """Return the name of the first limit that the tree below the processes ``roots`` exceeds, or ``None``."""
        tree = descendants(roots) if self._memory or self._tasks or self._files or self._most_pipes else {}
        if self._tasks and sum(map(len, tree.values())) > self._tasks:
            return "processes"
        holders = [_holder(pid, tasks) for pid, tasks in tree.items()]
        if self._memory and self._exceeds_memory(holders):
            return "memory"
        if self._most_pipes and self._pipes.total(holders) > self._most_pipes:
            return "pipes"
        if self._files and self._exceeds_files(holders):
            return "files"
        return None

    def _exceeds_memory(self, tree: list[int]) -> bool:
        room = self._memory - _SOCKET_BYTES * self._sockets(tree)
        # Resident memory is quick to read but counts shared pages fully: if even that is within the limit, stop here.
        return room < 0 or (room < sum(map(_resident, tree)) and room < self._shares.total(tree))

    def _sockets(self, tree: list[int]) -> int:
        if self._own_net:
            for pid in tree:
                with contextlib.suppress(OSError), open(f"/proc/{pid}/net/unix", "rb") as file:
                    return sum(1 for _ in file) - 1
        return len({link for pid in tree for link in _links(pid) if link.startswith("socket:")})

    def _exceeds_files(self, tree: list[int]) -> bool:
        room = self._files - self._nameless.total(tree)
        return room < 0 or _folder_exceeds(self._workdir, room)


class _TreeSum:
    """Sum of a resource over the processes of a tree. If a check runs out of time, the next check continues.

    Args:
        read: Takes a process id, and returns the amount to add for each object that the process uses (a pipe, a file,
            or the process itself), by the object's id. An object that several processes use counts once.
    """

    def __init__(self, read: Callable[[int], dict[int | str, int]]) -> None:
        self._read = read
        self._found: dict[int, dict[int | str, int]] = {}

    def total(self, tree: Iterable[int]) -> int:
        """Return the process tree's total use of the resource; processes that were not read yet are omitted."""
        until = time.monotonic() + _BUDGET_S
        missing = [pid for pid in tree if pid not in self._found]
        for at, pid in enumerate(missing):
            if at and time.monotonic() > until:
                break
            self._found[pid] = self._read(pid)
        held: dict[int | str, int] = {}
        for pid in tree:
            held.update(self._found.get(pid, {}))
        if all(pid in self._found for pid in missing):
            self._found = {}
        return sum(held.values())


def descendants(roots: list[int]) -> dict[int, list[str]]:
    """Return the processes of the trees that start at ``roots``, each with the ids of its tasks (threads)."""
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


def _holder(pid: int, tasks: list[str]) -> int:
    """Return the id of a task through which ``/proc`` shows the memory and the files of a process.

    If the first thread has ended and others run, ``/proc`` shows nothing under the id of the process; the same holds
    for a thread that is ending.
    """
    if len(tasks) < 2:
        return pid
    return next((task for task in (pid, *map(int, tasks)) if _resident(task)), pid)


def _resident(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0


def _proportional(pid: int) -> dict[int | str, int]:
    """Return ``{pid: bytes}``: the process's anonymous and shared memory; shared pages count proportionally."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            lines = [line for line in file if line.startswith((b"Pss_Anon:", b"Pss_Shmem:"))]
        return {pid: sum(int(line.split()[1]) << 10 for line in lines)}
    except (OSError, IndexError):
        return {pid: _resident(pid)}


def _links(pid: int) -> list[str]:
    """Return the link targets of a process's file descriptors, such as ``pipe:[1234]``."""
    found = []
    with contextlib.suppress(OSError):
        for number in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                found.append(os.readlink(f"/proc/{pid}/fd/{number}"))
    return found


def _pipes(pid: int) -> dict[int | str, int]:
    """Return ``{pipe: 1}`` for each pipe that a process has open; the sum of the values is the number of pipes."""
    return {link: 1 for link in _links(pid) if link.startswith("pipe:")}


def _nameless(pid: int) -> dict[int | str, int]:
    """Return the size in bytes of each unnamed file that a process has open or mapped, by inode number."""
    found: dict[int | str, int] = {}
    with contextlib.suppress(OSError), open(f"/proc/{pid}/maps", "rb") as file:
        lines = file.read(_MOST_MAPS).splitlines()
        for line in lines:
            if line.endswith(b" (deleted)") and not line.split(maxsplit=5)[5].startswith((b"/dev/zero", b"/memfd:")):
                found[int(line.split(maxsplit=5)[4])] = _UNKNOWN  # its size can be read only if it is open too
        if file.read(1):
            found[-1] = _UNKNOWN  # no benign program has so many mappings, which could include any file
    with contextlib.suppress(OSError):
        for number in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                status = os.stat(f"/proc/{pid}/fd/{number}")
                if status.st_nlink or not stat.S_ISREG(status.st_mode):
                    continue
                if not os.readlink(f"/proc/{pid}/fd/{number}").startswith("/memfd:"):  # its standard input
                    found[status.st_ino] = status.st_blocks * 512
    return found


def _folder_exceeds(folder: str, most: int) -> bool:
    """Whether the files below a folder use more than ``most`` bytes, or there are more than ``MOST_FILES``."""
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
