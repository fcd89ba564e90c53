"""``Backlog``: calls that wait for a process, in order of arrival, with one queue for each parent process.

Each call is assigned to a parent process, and waits for a child of this parent. A call whose session already has a
process waits only for its turn. A parent that is still importing modules delays only its own queue.
"""

from __future__ import annotations

import itertools
from collections import deque
from operator import attrgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from .child import Call, Child
    from .parent import Parent

_arrival = attrgetter("order")
MAX_RESTARTS = 5
"""Largest number of times that a call is started again if its program never began to run."""


class Backlog:
    """The queues of the calls that wait for a process."""

    def __init__(self) -> None:
        self._lines: dict[Parent | None, deque[Call]] = {}
        self._order = itertools.count(1)

    def append(self, call: Call) -> None:
        """Add a new call at the end of its queue."""
        call.order = next(self._order)
        self._join(call).append(call)

    def appendleft(self, call: Call) -> None:
        """Put a call that was taken from its queue back at the head of the queue."""
        self._join(call).appendleft(call)

    def retry(self, call: Call) -> bool:
        """Return a call to the head of its queue, because its program never began to run.

        This does not count as a start of the call. Returns false if the call was already put back ``MAX_RESTARTS``
        times.
        """
        if call.restarts >= MAX_RESTARTS:
            return False
        call.restarts += 1
        call.child = None
        self.appendleft(call)
        return True

    def remove(self, call: Call) -> None:
        """Remove a waiting call, wherever it is in its queue."""
        self._lines[call.line].remove(call)

    def heads(self) -> list[Call]:
        """Return the first call of each queue, in order of arrival."""
        return sorted((line[0] for line in self._lines.values() if line), key=_arrival)

    def next(self, take: Callable[[Parent, int], Child | None]) -> tuple[Child, Call] | None:
        """Remove and return the first call for which a process is ready: its session's process, or a waiting child.

        Args:
            take: Called with a parent and a size in bytes; returns a waiting child of that parent whose file system has
                that size, or ``None``.
        """
        for call in self.heads():
            child = call.session.child if call.session is not None else None
            child = child or take(call.parent, call.limits["file_bytes"])
            if child is not None:
                self.remove(call)
                return child, call
        return None

    def waiting_for(self, parent: Parent) -> int:
        """Return the number of calls that wait for a child of a parent process."""
        return len(self._lines.get(parent, ()))

    def move(self, old: Parent, new: Parent) -> None:
        """Move all calls that wait for one parent process to another parent process."""
        for call in self._lines.pop(old, ()):
            call.parent = new
            self._join(call).append(call)
        if new in self._lines:
            self._lines[new] = deque(sorted(self._lines[new], key=_arrival))

    def _join(self, call: Call) -> deque[Call]:
        has_process = call.session is not None and call.session.child is not None
        call.line = None if has_process else call.parent
        return self._lines.setdefault(call.line, deque())
