"""Halting a process tree, so that a session uses no CPU time between two cells.

SIGSTOP cannot be blocked, but running processes can wake one another: a tree is swept until every task is stopped. The
state of a process is that of its first thread alone, which can end while others run. No process of a stopped tree can
wake another. Covered: finding, stopping and waking a tree. Not covered: when a session
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
        main: First process of the tree.
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
        for pid, tasks in self._tree().items():
            if not _rests(pid, tasks):
                self._stopped.add(pid)
                _send(pid, signal.SIGSTOP)
        return self._sweeps <= MOST_SWEEPS

    def is_stopped(self) -> bool:
        """Whether every task of the tree is stopped."""
        return all(_rests(pid, tasks) for pid, tasks in self._tree().items())

    def undo(self) -> None:
        """Wake the stopped processes, the first process of the tree last."""
        for pid in (*(self._stopped - {self._main}), self._main):
            _send(pid, signal.SIGCONT)

    def _tree(self) -> dict[int, list[str]]:
        tree = descendants([pid for pid in (self._main, self._init) if pid])
        tree.pop(self._init, None)
        return tree


def _send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _rests(pid: int, tasks: list[str]) -> bool:
    """Whether every task of a process is stopped or has ended."""
    return all(_state(pid, task) in _STOPPED_STATES for task in tasks)


def _state(pid: int, task: int | str) -> bytes:
    """State of a task as a letter of the kernel; ``X`` if it is gone."""
    try:
        with open(f"/proc/{pid}/task/{task}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split(maxsplit=1)[0]
    except (OSError, IndexError):
        return b"X"
