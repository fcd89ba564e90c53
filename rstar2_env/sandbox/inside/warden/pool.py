"""Children that wait for a job: forked and isolated ahead of the calls, and replaced as they are taken.

Covered: how many wait, their places, failures to make one. Not covered: running a job (``supervisor``).
"""

from __future__ import annotations

import contextlib
import itertools
import sys
import time
from collections import defaultdict, deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ..orders import KILL
from .child import Child
from .slot import ChildSlot
from .stream import Stream
from .tidying import Tidying

if TYPE_CHECKING:
    from .loop import EventLoop
    from .parent import Parent
    from .parents import Parents

_RETRY_S = 0.2
_MOST_WRITTEN_OFF = 16
"""Places that may be lost to processes that cannot be ended, before the warden ends and another is started."""
_MAX_FAILURES = 20
"""Children in a row that may fail to be prepared before this warden gives up."""


class ChildPool:
    """Makes children and keeps them waiting.

    Args:
        options: ``waiting``, ``file_bytes`` (of the first children).
        loop: Receives their messages.
        parents: Fork them.
        slots: A place for every child that may be alive at once, those of sessions aside.
        make_slot: Makes another place.
        demand: How many calls could start now if there were children of a parent.
        on_report: Called with a child when it has sent a message.
        on_output: Called with a child and a stream when it has written.
        give_up: Called with the reason when no child at all can be made.
    """

    def __init__(
        self,
        options: dict[str, Any],
        loop: EventLoop,
        parents: Parents,
        slots: list[ChildSlot],
        make_slot: Callable[[int], ChildSlot],
        demand: Callable[[Parent], int],
        on_report: Callable[[Child, int], None],
        on_output: Callable[[Child, Stream, int], None],
        give_up: Callable[[str], None],
    ) -> None:
        self._target: int = options["waiting"]
        self._file_bytes: int = options["file_bytes"]
        self._loop = loop
        self._parents = parents
        self._slots = slots
        self._make_slot = make_slot
        self._demand = demand
        self._on_report = on_report
        self._on_output = on_output
        self._give_up = give_up
        self._tidying = Tidying(loop)
        self._free = deque(slots)
        self._base = len(slots)
        self._waiting: defaultdict[Parent, deque[Child]] = defaultdict(deque)
        self._failures = self._written_off = 0
        self._proven = False
        self._numbers = itertools.count(1)
        self.children: dict[int, Child] = {}

    def take(self, parent: Parent, file_bytes: int) -> Child | None:
        """A waiting child of a parent whose file system has this size; ``None`` when none is ready yet."""
        self._file_bytes = file_bytes  # fixed when a child is prepared: those of another size are discarded
        waiting = self._waiting[parent]
        while waiting:
            child = waiting.popleft()
            if child.file_bytes == file_bytes:
                return child
            self.discard(child)
        return None

    def make_places(self, others: int) -> None:
        """Ensure that so many sessions and programs that gave way do not take places from other calls."""
        while len(self._slots) < self._base + others:
            try:
                slot = self._make_slot(len(self._slots))
            except OSError as error:  # then they do, for now
                print(f"No separate place for a session or a program that gave way: {error}", file=sys.stderr)
                return
            self._slots.append(slot)
            self._free.append(slot)

    def refill(self, at_once: bool = True) -> None:
        """Keep children waiting: as many as asked for, and one for each call that could start now.

        Args:
            at_once: Also where no call waits for one and another child does. A fork beside the program that has just
                begun would slow it down; it can wait until that program has ended.
        """
        lacking = []
        for parent in self._parents.all():
            demand = 0
            if parent.retiring:
                self._let_go(parent)
            elif parent.grown:
                demand = self._demand(parent)
                if not (at_once or demand) and self._waiting[parent]:
                    continue
                lacking.append((demand, parent))
        if len(lacking) > 1:  # those first whose calls wait
            lacking.sort(key=lambda entry: -entry[0])
        for demand, parent in lacking:
            wanted = self._kept(parent) + demand - len(self._waiting[parent]) - parent.preparing
            if demand and not self._free and not parent.preparing:
                self._spare_one(parent)
            for _ in range(min(wanted, len(self._free))):
                if self._loop.running:
                    self._fork(self._free.popleft(), parent)

    def admit(self, child: Child, said: str) -> bool:
        """Handle a child's first message; returns whether it is ready."""
        word, _, rest = said.partition(" ")
        if word != "ready":
            child.failure = rest
            return False
        child.become_ready(int(rest) / 1e9)
        self._proven = True
        child.parent.preparing -= 1
        self._failures = 0
        self._waiting[child.parent].append(child)
        return True

    def lose(self, child: Child) -> None:
        """Handle a child that ended before it had a job. Unless it was discarded, report this and slow down."""
        if not child.ready:
            child.parent.preparing -= 1
        if child.discarded:
            return
        with contextlib.suppress(ValueError):
            self._waiting[child.parent].remove(child)
        self._fail(child.failure or "it ended without a message")

    def discard(self, child: Child) -> None:
        """End a child that is no longer needed."""
        child.discarded = True
        try:
            child.order(KILL)
        except OSError:
            self._loop.stop()

    def release(self, child: Child) -> None:
        """When nothing of a child is left: give its slot to the next."""
        if not (child.gone and child.settled) or child.number not in self.children:
            return
        self._forget(child)
        self._free.append(child.slot)
        if self._failures:
            self._loop.call_at(time.monotonic() + _RETRY_S, self.refill)
        else:
            self.refill()

    def overdue(self, patience_s: float) -> list[Child]:
        """The children that were told to end and have not, in so many seconds. One that never was ready is told."""
        now, found = time.monotonic(), []
        for child in list(self.children.values()):
            if not child.is_overdue(now, patience_s):
                continue
            if child.ending:
                found.append(child)
                continue
            child.failure = f"it was not ready after {patience_s:g} seconds"
            try:
                child.order(KILL)
            except OSError:
                self._loop.stop()
        return found

    def write_off(self, child: Child) -> None:
        """Give up a child of which something cannot be ended, and its place with it; another place is made.

        Without this, each such child would take a place for ever, and the last one every call.
        """
        print(f"A child cannot be ended; place {child.slot.index} is given up.", file=sys.stderr)
        self._written_off += 1
        if self._written_off > _MOST_WRITTEN_OFF:
            self._loop.stop()
            return
        self._forget(child)
        try:
            self._slots.append(self._make_slot(len(self._slots)))
        except OSError as error:
            print(f"No other place can be made: {error}", file=sys.stderr)
            self._loop.stop()
            return
        self._free.append(self._slots[-1])
        self.refill()

    def close(self) -> None:
        """Close what is open of every child, and remove every place."""
        for child in list(self.children.values()):
            child.close()
        for slot in self._slots:
            slot.close()

    def _forget(self, child: Child) -> None:
        del self.children[child.number]
        child.parent.children -= 1
        for descriptor in child.descriptors():
            self._loop.forget(descriptor)
        child.close()
        if child.slot.scratch is not None:
            self._tidying.remove(child.workdir)

    def _kept(self, parent: Parent) -> int:
        """How many children of a parent are kept waiting: by its share of the calls, and one at least."""
        return max(1, round(self._target * self._parents.share(parent)))

    def _spare_one(self, parent: Parent) -> None:
        """No place is free for a child that a call waits for: end one that waits without need."""
        others = [other for other in self._parents.all() if other is not parent and self._waiting[other]]
        if others:
            spare = max(others, key=lambda other: len(self._waiting[other]) - self._kept(other))
            self.discard(self._waiting[spare].popleft())

    def _let_go(self, parent: Parent) -> None:
        """End the children that wait under a parent that shall end, and it, when it has no other."""
        while waiting := self._waiting[parent]:
            self.discard(waiting.popleft())
        if not parent.children and not self._demand(parent):
            del self._waiting[parent]
            self._parents.drop(parent)

    def _fork(self, slot: ChildSlot, parent: Parent) -> None:
        try:
            child = Child(next(self._numbers), slot, self._file_bytes, parent)
        except OSError as error:  # out of descriptors, or of disk
            self._free.append(slot)
            self._fail(str(error))
            self._loop.call_at(time.monotonic() + _RETRY_S, self.refill)
            return
        self.children[child.number] = child
        parent.preparing += 1
        parent.children += 1
        self._loop.watch(child.report.fileno(), partial(self._on_report, child), owner=child)
        for stream in child.streams:
            self._loop.watch(stream.descriptor, partial(self._on_output, child, stream), owner=child)
        try:
            child.fork()
        except OSError:
            self._loop.stop()

    def _fail(self, reason: str) -> None:
        """Count a child that could not be prepared; too many in a row, or the very first, and this warden gives up."""
        self._failures += 1
        why = f"A child could not be prepared: {reason}"
        print(why, file=sys.stderr)
        if not self._proven or self._failures > _MAX_FAILURES:
            self._give_up(why)
