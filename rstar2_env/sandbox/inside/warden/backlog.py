"""Calls that wait for a worker: in the order in which they came, in one line for each thing that they wait for.

A call waits for a child of its parent, or, where its session has a process already, for nothing but its turn. A parent
that is still importing its modules holds up its own line alone.
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

_came = attrgetter("order")


class Backlog:
    """The lines of waiting calls."""

    def __init__(self) -> None:
        self._lines: dict[Parent | None, deque[Call]] = {}
        self._order = itertools.count(1)
        self._count = 0

    def __len__(self) -> int:
        """How many calls wait."""
        return self._count

    def append(self, call: Call) -> None:
        """Queue a call after all others."""
        call.order = next(self._order)
        self._join(call).append(call)

    def appendleft(self, call: Call) -> None:
        """Queue a call that had its turn before: ahead of those that came later."""
        self._join(call).appendleft(call)

    def remove(self, call: Call) -> None:
        """Take a waiting call out, wherever it stands."""
        self._lines[call.line].remove(call)
        self._count -= 1

    def heads(self) -> list[Call]:
        """The first call of each line, in the order in which they came."""
        return sorted((line[0] for line in self._lines.values() if line), key=_came)

    def next(self, take: Callable[[Parent, int], Child | None]) -> tuple[Child, Call] | None:
        """Take out the first call for which there is a child, that of its session or one that waits.

        Args:
            take: Gives a waiting child of a parent, by the size of its file system in bytes; ``None`` when it has none.
        """
        for call in self.heads():
            child = call.session.child if call.session is not None else None
            child = child or take(call.parent, call.limits["file_bytes"])
            if child is not None:
                self.remove(call)
                return child, call
        return None

    def waiting_for(self, parent: Parent) -> int:
        """How many calls wait for a child of a parent."""
        return len(self._lines.get(parent, ()))

    def move(self, old: Parent, new: Parent) -> None:
        """Let the calls that wait for one parent wait for another."""
        for call in self._lines.pop(old, ()):
            call.parent = new
            self._count -= 1
            self._join(call).append(call)
        if new in self._lines:
            self._lines[new] = deque(sorted(self._lines[new], key=_came))

    def _join(self, call: Call) -> deque[Call]:
        has_process = call.session is not None and call.session.child is not None
        call.line = None if has_process else call.parent
        self._count += 1
        return self._lines.setdefault(call.line, deque())
