"""Lowering the weight of a whole tree on the cores, and telling for how long that has held it back.

The tree gets the nice value ``LEVEL``, its sessions too where the kernel shares the cores between sessions (autogroup).
What it starts from then on inherits both, and no program may raise them: the zygote sets RLIMIT_NICE to 0, and files
below ``/proc`` are not for writing. On idle cores it runs at full speed. Covered: finding and lowering a tree, its time
without a core. Not covered: when a program gives way (the warden's ``deprioritize``).
"""

from __future__ import annotations

import contextlib
import os
import time

from .watch import descendants

LEVEL = 6
"""The nice value, which is about a quarter of the weight of other processes."""
_MOST_SWEEPS = 8
"""Sweeps after which a tree that forks faster than it is found counts as one that cannot be lowered."""
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


class LoweredTree:
    """One tree that gives way.

    Args:
        main: Its first process.
        init: The pausing process that is pid 1 above it, which does nothing in any case; 0 where there is none.
    """

    def __init__(self, main: int, init: int) -> None:
        self._main = main
        self._init = init
        self._since = time.monotonic()
        tree = self._tree()
        self._waited = _waited(tree)
        self._spent = _spent(tree)

    def lower(self) -> bool:
        """Lower the weight of all that is there now; false where it cannot be, or what that costs cannot be told."""
        try:
            return self._main in self._tree() and str(self._main) in self._waited and self._sweep_all()
        except OSError:  # another user's, or too soon after another session of this machine was lowered
            return False

    def held_back_s(self) -> float:
        """Seconds since then in which it could have run and had no core.

        That is the longest that one of its tasks waited. What all of them together ran is no such time, so a tree
        whose tasks keep only one another waiting was not held back.
        """
        tree = self._tree()
        waited = max((each - self._waited.get(task, 0.0) for task, each in _waited(tree).items()), default=0.0)
        spent = _spent(tree) - self._spent
        return max(0.0, min(waited, time.monotonic() - self._since - spent))

    def _tree(self) -> dict[int, list[str]]:
        tree = descendants([pid for pid in (self._main, self._init) if pid])
        tree.pop(self._init, None)  # it is in the session of the parent
        return tree

    def _sweep_all(self) -> bool:
        return any(not self._sweep() for _ in range(_MOST_SWEEPS))

    def _sweep(self) -> bool:
        """Lower what is found; returns whether there was anything to lower."""
        found = False
        for pid, tasks in self._tree().items():
            found |= _lower_session(pid)
            for task in map(int, tasks):
                with contextlib.suppress(ProcessLookupError):
                    if os.getpriority(os.PRIO_PROCESS, task) < LEVEL:
                        os.setpriority(os.PRIO_PROCESS, task, LEVEL)
                        found = True
        return found


def _lower_session(pid: int) -> bool:
    """Lower the session of a process, where the kernel gives it a weight of its own; returns whether it was higher."""
    path = f"/proc/{pid}/autogroup"
    try:
        with open(path, "rb") as file:
            text = file.read()
    except OSError:  # a kernel without them
        return False
    if not text or int(text.split()[-1]) >= LEVEL:
        return False
    with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(path, "wb", buffering=0) as file:
        file.write(b"%d" % LEVEL)
    return True


def _waited(tree: dict[int, list[str]]) -> dict[str, float]:
    """Seconds for which each task of a tree was ready to run and did not; without those of which it is not known."""
    found: dict[str, float] = {}
    for pid, tasks in tree.items():
        for task in tasks:
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/schedstat", "rb") as file:
                ran, waited, _ = map(int, file.read().split())
                if ran:  # else the kernel does not count
                    found[task] = waited / 1e9
    return found


def _spent(tree: dict[int, list[str]]) -> float:
    """CPU seconds of the processes of a tree, and of those of their children that were waited for."""
    ticks = 0
    for pid in tree:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:
            ticks += sum(map(int, file.read().rpartition(b")")[2].split()[11:15]))
    return ticks * _TICK_S
