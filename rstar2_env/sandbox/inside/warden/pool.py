"""``ChildPool``: child processes that are forked and isolated ahead of the calls, and replaced when a call takes one.

Covered: the number of waiting children, their slots, failures to create a child. Not covered: how a job runs
(``supervisor``).
"""

from __future__ import annotations

import contextlib
import itertools
import sys
import time
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
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
"""Largest number of slots that may be lost to processes that cannot be killed; beyond it, the warden ends and is
replaced."""
_MAX_FAILURES = 20
"""The warden gives up if more than this number of consecutive children fail to start."""


@dataclass(eq=False)
class ChildPool:
    """Creates child processes, and keeps some of them waiting for jobs.

    Attributes:
        options: The numbers ``workers`` (programs that run at the same time), ``parents`` (parent processes) and
            ``waiting`` (children without a job), and ``file_bytes``, the size of the first children's file systems.
        loop: Event loop that receives the children's messages.
        parents: The parent processes that fork the children.
        make_slot: Creates a slot with the given number.
        demand: Returns the number of calls that could start now with a child of the given parent.
        on_report: Called with a child that has sent a message, and the events (epoll's bits) of its socket.
        on_output: Called with a child, a stream to which it has written, and the events of that stream.
        give_up: Called with the reason if no child can be created.
        children: All children, by number.
    """

    options: dict[str, Any]
    loop: EventLoop
    parents: Parents
    make_slot: Callable[[int], ChildSlot]
    demand: Callable[[Parent], int]
    on_report: Callable[[Child, int], None]
    on_output: Callable[[Child, Stream, int], None]
    give_up: Callable[[str], None]
    children: dict[int, Child] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Create the slots of all concurrent children, except those of sessions and of deprioritized programs.

        Raises:
            OSError: A slot cannot be created.
        """
        self._target: int = self.options["waiting"]
        self._file_bytes: int = self.options["file_bytes"]
        self._tidying = Tidying(self.loop)
        self._base = self.options["workers"] + 2 * self.options["waiting"] + self.options["parents"]
        self._slots = [self.make_slot(index) for index in range(self._base)]
        self._free = deque(self._slots)
        self._waiting: defaultdict[Parent, deque[Child]] = defaultdict(deque)
        self._failures = self._written_off = 0
        self._proven = False
        self._numbers = itertools.count(1)

    def take(self, parent: Parent, file_bytes: int) -> Child | None:
        """Take a parent's waiting child whose file system has ``file_bytes`` bytes; ``None`` if there is none.

        Waiting children whose file system has another size are ended.
        """
        self._file_bytes = file_bytes  # fixed when a child is created: children with another size are discarded
        waiting = self._waiting[parent]
        while waiting:
            child = waiting.popleft()
            if child.file_bytes == file_bytes:
                return child
            self.discard(child)
        return None

    def make_slots(self, others: int) -> None:
        """Create slots if needed, so that sessions and deprioritized programs have ``others`` slots of their own."""
        while len(self._slots) < self._base + others:
            try:
                slot = self.make_slot(len(self._slots))
            except OSError as error:  # they use the slots of other calls for now
                print(f"No further slot for a session or a slow program could be created: {error}", file=sys.stderr)
                return
            self._slots.append(slot)
            self._free.append(slot)

    def refill(self, at_once: bool = True) -> None:
        """Fork children until enough are waiting: the configured number, and one for each call that could start now.

        Args:
            at_once: Whether to fork even if no call waits and another child is ready. If false, such a fork, which
                would slow down a program that has just started, is postponed until a later ``refill``.
        """
        lacking = []
        for parent in self.parents.all():
            demand = 0
            if parent.retiring:
                self._let_go(parent)
            elif parent.ready:
                demand = self.demand(parent)
                if not (at_once or demand) and self._waiting[parent]:
                    continue
                lacking.append((demand, parent))
        lacking.sort(key=lambda entry: -entry[0])  # parents with waiting calls first
        for demand, parent in lacking:
            wanted = self._kept(parent) + demand - len(self._waiting[parent]) - parent.preparing
            if demand and not self._free and not parent.preparing:
                self._spare_one(parent)
            for _ in range(min(wanted, len(self._free))):
                if self.loop.running:
                    self._fork(self._free.popleft(), parent)

    def admit(self, child: Child, message: str) -> bool:
        """Handle the first message from a child; return whether the child is ready for a job."""
        word, _, rest = message.partition(" ")
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
        """Handle a child that ended before it had a job; count this as a failure, unless the child was discarded."""
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
        self.kill(child)

    def kill(self, child: Child) -> None:
        """Order the parent process to kill a child with all its processes; if the parent has ended, stop the warden."""
        try:
            child.order(KILL)
        except OSError:
            self.loop.stop()

    def release(self, child: Child) -> None:
        """Free the slot of a child if all processes of the child have ended."""
        if not (child.gone and child.settled) or child.number not in self.children:
            return
        self._forget(child)
        self._free.append(child.slot)
        if self._failures:
            self.loop.call_at(time.monotonic() + _RETRY_S, self.refill)
        else:
            self.refill()

    def overdue(self, timeout_s: float) -> list[Child]:
        """Check which children take more than ``timeout_s`` seconds to become ready or to end.

        Kill the children that are not ready, and return the children that were ordered to end and still run.
        """
        now, found = time.monotonic(), []
        for child in list(self.children.values()):
            if not child.is_overdue(now, timeout_s):
                continue
            if child.ending:
                found.append(child)
                continue
            child.failure = f"it was not ready after {timeout_s:g} seconds"
            self.kill(child)
        return found

    def write_off(self, child: Child) -> None:
        """Give up a child whose process cannot be killed, and replace its slot with a new one.

        Otherwise each such child would occupy a slot forever, and in the end no slot would be left.
        """
        print(f"A program cannot be killed; its slot ({child.slot.index}) is not used any more.", file=sys.stderr)
        self._written_off += 1
        if self._written_off > _MOST_WRITTEN_OFF:
            self.loop.stop()
            return
        self._forget(child)
        try:
            self._slots.append(self.make_slot(len(self._slots)))
        except OSError as error:
            print(f"No further slot for a program could be created: {error}", file=sys.stderr)
            self.loop.stop()
            return
        self._free.append(self._slots[-1])
        self.refill()

    def close(self) -> None:
        """Close all children and remove all slots."""
        for child in list(self.children.values()):
            child.close()
        for slot in self._slots:
            slot.close()

    def _forget(self, child: Child) -> None:
        del self.children[child.number]
        child.parent.children -= 1
        for descriptor in child.descriptors():
            self.loop.forget(descriptor)
        child.close()
        if child.slot.scratch is not None:
            self._tidying.remove(child.workdir)

    def _kept(self, parent: Parent) -> int:
        """Number of waiting children that a parent should have: proportional to its share of calls, at least one."""
        return max(1, round(self._target * self.parents.share(parent)))

    def _spare_one(self, parent: Parent) -> None:
        """Free a slot for a child of ``parent``: end a waiting child of another parent.

        The other parent is the one with the most spare children.
        """
        others = [other for other in self.parents.all() if other is not parent and self._waiting[other]]
        if others:
            spare = max(others, key=lambda other: len(self._waiting[other]) - self._kept(other))
            self.discard(self._waiting[spare].popleft())

    def _let_go(self, parent: Parent) -> None:
        """End the waiting children of a retiring parent, and the parent too if it has no child and no call needs it."""
        while waiting := self._waiting[parent]:
            self.discard(waiting.popleft())
        if not parent.children and not self.demand(parent):
            del self._waiting[parent]
            self.parents.drop(parent)

    def _fork(self, slot: ChildSlot, parent: Parent) -> None:
        try:
            child = Child(next(self._numbers), slot, self._file_bytes, parent)
        except OSError as error:  # no descriptors or disk space left
            self._free.append(slot)
            self._fail(str(error))
            self.loop.call_at(time.monotonic() + _RETRY_S, self.refill)
            return
        self.children[child.number] = child
        parent.preparing += 1
        parent.children += 1
        self.loop.watch(child.report.fileno(), partial(self.on_report, child), owner=child)
        for stream in child.streams:
            self.loop.watch(stream.descriptor, partial(self.on_output, child, stream), owner=child)
        try:
            child.fork()
        except OSError:
            self.loop.stop()

    def _fail(self, reason: str) -> None:
        """Count a child that could not be created.

        Call ``give_up`` after more than ``_MAX_FAILURES`` failures in a row, or if no child was ever ready.
        """
        self._failures += 1
        why = f"A process for a program could not be created: {reason}"
        print(why, file=sys.stderr)
        if not self._proven or self._failures > _MAX_FAILURES:
            self.give_up(why)
