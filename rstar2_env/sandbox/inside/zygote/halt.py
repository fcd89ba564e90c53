"""Halting a whole tree of processes, so that a session between two cells takes no time of any core.

SIGSTOP cannot be refused, but processes that run can undo one another's: a tree is swept until every process was seen
to stand. Nothing in a tree that stands can wake another. Covered: finding, stopping and waking a tree. Not covered:
when a session is halted (the warden's ``cells``).
"""

from __future__ import annotations

import contextlib
import os
import signal

from .watch import descendants

MOST_SWEEPS = 40
"""Sweeps, some 50 ms apart, after which a tree counts as one that cannot be halted."""
_STANDING = (b"T", b"t", b"Z", b"X")


class TreeHalt:
    """One halt of one tree.

    Args:
        main: Its first process.
        init: The pausing process that is pid 1 above it, which does nothing in any case; 0 where there is none.
    """

    def __init__(self, main: int, init: int) -> None:
        self._main = main
        self._init = init
        self._stopped: set[int] = set()
        self._sweeps = 0

    def sweep(self) -> bool:
        """Stop every process that is there now; false when that was tried too often."""
        self._sweeps += 1
        for pid in self._pids():
            if _state(pid) not in _STANDING:
                self._stopped.add(pid)
                _send(pid, signal.SIGSTOP)
        return self._sweeps <= MOST_SWEEPS

    def is_stopped(self) -> bool:
        """Whether every process of the tree stands still."""
        return all(_state(pid) in _STANDING for pid in self._pids())

    def undo(self) -> None:
        """Wake what was stopped, the first process last."""
        for pid in (*(self._stopped - {self._main}), self._main):
            _send(pid, signal.SIGCONT)

    def _pids(self) -> set[int]:
        return descendants([pid for pid in (self._main, self._init) if pid]).keys() - {self._init}


def _send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _state(pid: int) -> bytes:
    """One letter for what a process does, as the kernel names it; that of the dead where it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split(maxsplit=1)[0]
    except (OSError, IndexError):
        return b"X"
