"""Halting a process tree, so that a session uses no CPU time between two cells.

SIGSTOP cannot be blocked, but running processes can wake one another: a tree is swept until every process is stopped.
No process of a stopped tree can wake another. Covered: finding, stopping and waking a tree. Not covered: when a session
is halted (the warden's ``cells``).
"""

from __future__ import annotations

import contextlib
import os
import signal

from .watch import descendants

MOST_SWEEPS = 40
"""Largest number of sweeps, about 50 ms apart, before halting a tree counts as failed."""
_STOPPED_STATES = (b"T", b"t", b"Z", b"X")


class TreeHalt:
    """One halt of one process tree.

    Args:
        main: Its first process.
        init: The pausing process that is its pid 1 and never runs; 0 if there is none.
    """

    def __init__(self, main: int, init: int) -> None:
        self._main = main
        self._init = init
        self._stopped: set[int] = set()
        self._sweeps = 0

    def sweep(self) -> bool:
        """Stop all current processes; return false after too many sweeps."""
        self._sweeps += 1
        for pid in self._pids():
            if _state(pid) not in _STOPPED_STATES:
                self._stopped.add(pid)
                _send(pid, signal.SIGSTOP)
        return self._sweeps <= MOST_SWEEPS

    def is_stopped(self) -> bool:
        """Whether every process of the tree is stopped."""
        return all(_state(pid) in _STOPPED_STATES for pid in self._pids())

    def undo(self) -> None:
        """Wake the stopped processes, the first process of the tree last."""
        for pid in (*(self._stopped - {self._main}), self._main):
            _send(pid, signal.SIGCONT)

    def _pids(self) -> set[int]:
        return descendants([pid for pid in (self._main, self._init) if pid]).keys() - {self._init}


def _send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _state(pid: int) -> bytes:
    """State of a process as a letter of the kernel; ``X`` if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split(maxsplit=1)[0]
    except (OSError, IndexError):
        return b"X"
