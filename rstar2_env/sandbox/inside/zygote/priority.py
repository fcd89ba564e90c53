"""Lowers the priority of a process tree, and measures how long the tree has waited for a core since then.

The nice value of the tree's processes becomes ``LEVEL`` more than that of the zygote, at most 19. If the kernel
schedules by session (autogroup), the nice value of their sessions is raised from 0 to ``LEVEL``. New processes inherit
both values, and programs cannot raise their weight: the zygote sets RLIMIT_NICE to 0, and files below ``/proc`` are not
writable. On idle cores, the tree runs at full speed. Covered: how a tree is found and lowered, and its waiting time.
Not covered: when a program is deprioritized (the warden's ``deprioritizing``).
"""

from __future__ import annotations

import contextlib
import os
import time

from .watch import descendants

LEVEL = 6
"""Nice value of a lowered process tree, relative to its zygote: about a quarter of the normal CPU weight."""
_HIGHEST = 19
"""Highest nice value of Linux."""
_MOST_SWEEPS = 8
"""Largest number of passes over the tree; if even the last pass finds a new process, the tree counts as not lowered."""
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


class LoweredTree:
    """A process tree with a lowered CPU scheduling weight.

    Args:
        main: Id of the tree's first process.
        init: Id of the process that is the tree's pid 1 and only waits (``linux.Pausing``); 0 if there is none.
    """

    def __init__(self, main: int, init: int) -> None:
        self._main = main
        self._init = init
        self._level = min(os.getpriority(os.PRIO_PROCESS, 0) + LEVEL, _HIGHEST)
        self._since = time.monotonic()
        tree = self._tree()
        self._waited = _waited(tree)
        self._spent = _spent(tree)

    def lower(self) -> bool:
        """Lower the weight of all processes; return false if this fails or if their waiting time cannot be measured."""
        try:
            return self._main in self._tree() and str(self._main) in self._waited and self._sweep_all()
        except OSError:  # processes of another user, or too soon after another session was lowered
            return False

    def waited_s(self) -> float:
        """Return the seconds, since this object was made, in which the tree was ready to run but had no core.

        The result is the longest wait of any task (thread) of the tree, at most the elapsed time minus the CPU time of
        all tasks. While any task runs, the tree does not count as waiting.
        """
        tree = self._tree()
        waited = max((each - self._waited.get(task, 0.0) for task, each in _waited(tree).items()), default=0.0)
        spent = _spent(tree) - self._spent
        return max(0.0, min(waited, time.monotonic() - self._since - spent))

    def _tree(self) -> dict[int, list[str]]:
        tree = descendants([pid for pid in (self._main, self._init) if pid])
        tree.pop(self._init, None)  # it belongs to the session of the parent
        return tree

    def _sweep_all(self) -> bool:
        return any(not self._sweep() for _ in range(_MOST_SWEEPS))

    def _sweep(self) -> bool:
        """Lower the weight of all processes found in the tree; return whether any weight was higher before."""
        found = False
        for pid, tasks in self._tree().items():
            found |= _lower_session(pid)
            for task in map(int, tasks):
                with contextlib.suppress(ProcessLookupError):
                    if os.getpriority(os.PRIO_PROCESS, task) < self._level:
                        os.setpriority(os.PRIO_PROCESS, task, self._level)
                        found = True
        return found


def _lower_session(pid: int) -> bool:
    """Lower the weight of a process's session if the kernel schedules by session; return whether it was higher."""
    path = f"/proc/{pid}/autogroup"
    try:
        with open(path, "rb") as file:
            text = file.read()
    except OSError:  # a kernel without autogroups
        return False
    if not text or int(text.split()[-1]) >= LEVEL:
        return False
    with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(path, "wb", buffering=0) as file:
        file.write(b"%d" % LEVEL)
    return True


def _waited(tree: dict[int, list[str]]) -> dict[str, float]:
    """Return the seconds for which each task of a tree waited for a core; tasks with unknown times are omitted."""
    found: dict[str, float] = {}
    for pid, tasks in tree.items():
        for task in tasks:
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/schedstat", "rb") as file:
                ran, waited, _ = map(int, file.read().split())
                if ran:  # otherwise the kernel does not count
                    found[task] = waited / 1e9
    return found


def _spent(tree: dict[int, list[str]]) -> float:
    """Return the CPU seconds of a tree's processes and of their reaped children."""
    ticks = 0
    for pid in tree:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:
            ticks += sum(map(int, file.read().rpartition(b")")[2].split()[11:15]))
    return ticks * _TICK_S
