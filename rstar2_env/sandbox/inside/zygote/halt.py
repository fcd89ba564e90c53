"""Stops a process tree with SIGSTOP, so that a session uses no CPU time between two cells.

A process cannot block SIGSTOP, but running processes can wake one another. Therefore SIGSTOP is sent to the whole tree
repeatedly, until every task (thread) is stopped. The state of a process shows only its first thread, which can end
while others run, so every thread is checked. Once all are stopped, no process of the tree can wake another. Covered:
how a tree is found, stopped and woken. Not covered: when a session is halted (the warden's ``cells``).
"""

from __future__ import annotations

import contextlib
import os
import signal

from .watch import descendants

MOST_SWEEPS = 40
"""Largest number of times that SIGSTOP is sent to the whole tree, about 50 ms apart, before halting counts as failed.
"""
_STOPPED_STATES = (b"T", b"t", b"Z", b"X")


class TreeHalt:
    """Stops one process tree with SIGSTOP, and can wake it again.

    Args:
        main: Id of the tree's first process.
        init: Id of the process that is the tree's pid 1 and only waits (``linux.Pausing``); 0 if there is none.
    """

    def __init__(self, main: int, init: int) -> None:
        self._main = main
        self._init = init
        self._stopped: set[int] = set()
        self._sweeps = 0

    def sweep(self) -> bool:
        """Send SIGSTOP to all running processes of the tree.

        Return false if this method was called more than ``MOST_SWEEPS`` times.
        """
        self._sweeps += 1
        for pid, tasks in self._tree().items():
            if not _rests(pid, tasks):
                self._stopped.add(pid)
                _send(pid, signal.SIGSTOP)
        return self._sweeps <= MOST_SWEEPS

    def is_stopped(self) -> bool:
        """Whether every task of the process tree is stopped."""
        return all(_rests(pid, tasks) for pid, tasks in self._tree().items())

    def undo(self) -> None:
        """Wake the stopped processes, the tree's first process last."""
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
    """Return the kernel's letter for the state of a task (``T`` for stopped); ``X`` if the task has ended."""
    try:
        with open(f"/proc/{pid}/task/{task}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split(maxsplit=1)[0]
    except (OSError, IndexError):
        return b"X"
