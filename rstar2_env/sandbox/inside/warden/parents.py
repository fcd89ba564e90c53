"""``Parents``: starts the parent processes of a warden, which fork children, and chooses a parent for each program.

A light parent, which has imported only the standard library, exists from the start. Any other parent has imported
exactly the preloaded modules that a program names, and is started for the first such program. If no further parent is
allowed, the parent with all modules is used, and a parent that was not used for a while is ended to make room.

Covered: the choice, start and end of parents, and their share of calls. Not covered: children (``pool``), and the
search for the modules that a program names (``imports``).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from .. import orders
from .imports import Imports
from .parent import Parent
from .zygote_link import START_S

if TYPE_CHECKING:
    from .loop import EventLoop
    from .zygote_link import ZygoteLink

_UNUSED_S = 60.0
"""Seconds without a call after which a parent process may be replaced by another."""
_FADING = 0.99
"""Factor that each new call applies to the weights of earlier calls, when the share of calls per parent is computed."""


class Parents:
    """All parent processes of one warden.

    Args:
        options: ``preload`` (modules to import in advance), ``parents`` (the maximum number of parents, at least 1),
            ``stall_timeout_s`` (seconds after which a parent that does not answer is considered stalled).
        zygote: Link to the zygote, the process that forks the parents.

    Raises:
        RuntimeError: The first parent could not be started; the message gives the reason.
    """

    def __init__(self, options: dict[str, Any], zygote: ZygoteLink) -> None:
        self._zygote = zygote
        self._all: tuple[str, ...] = tuple(options["preload"])
        self._most: int = options["parents"]
        self._stall_timeout_s: float = options["stall_timeout_s"]
        self._imports = Imports(self._all)
        self._by_names: dict[tuple[str, ...], Parent] = {}
        self._failed: set[tuple[str, ...]] = set()
        self._loop: EventLoop | None = None
        self._on_message: Callable[[Parent, orders.OrderReply | None], None]
        self._on_settled: Callable[[Parent], None]
        names = self._all if self._most == 1 else ()
        try:
            first = self._make(names)
            why = orders.start_failure(first.link.wait(START_S))
        except OSError as error:
            why = str(error)
        if why is not None:
            raise RuntimeError(f"The process from which programs are forked (zygote) did not start: {why}.")
        first.use = 1.0
        self.first = first
        self.mark_ready(first)

    def all(self) -> list[Parent]:
        """Return all current parent processes."""
        return list(self._by_names.values())

    def for_program(self, texts: Iterable[bytes]) -> Parent:
        """Choose the parent process that should fork the child for a program.

        Args:
            texts: Source of the program, and of the Python files that come with it.
        """
        if self._most == 1 or not self._all:
            return self.first
        return self._use(self._imports.named(texts))

    def for_session(self) -> Parent:
        """Return the parent with all preloaded modules, since later calls of a session may import any of them."""
        return self.first if self._most == 1 or not self._all else self._use(self._all)

    def listen(
        self,
        loop: EventLoop,
        on_message: Callable[[Parent, orders.OrderReply | None], None],
        on_settled: Callable[[Parent], None],
    ) -> None:
        """Receive the messages of all parent processes in an event loop.

        Args:
            loop: The event loop.
            on_message: Called with each message of a ready parent, and with ``None`` when the parent has ended.
            on_settled: Called with a parent that has become ready, or that could not be started (``ready`` is false).
        """
        self._loop, self._on_message, self._on_settled = loop, on_message, on_settled
        for parent in self.all():
            self._watch(parent, loop)

    def mark_ready(self, parent: Parent) -> None:
        """Record that a parent process has imported its modules, so that it can fork children now."""
        parent.link.control.settimeout(self._stall_timeout_s)
        parent.ready = True

    def drop(self, parent: Parent) -> None:
        """Remove a parent process from the list, and end it."""
        if self._by_names.get(parent.names) is parent:
            del self._by_names[parent.names]
        if self._loop is not None:
            self._loop.forget(parent.link.control.fileno())
        parent.link.close()

    def share(self, parent: Parent) -> float:
        """Return the share of recent calls that a parent process served, in [0, 1]."""
        return parent.use / (sum(other.use for other in self._by_names.values()) or 1.0)

    def stalled(self) -> bool:
        """Ping every parent process, and drop those that did not start in time; return whether an answer is overdue."""
        since = time.monotonic() - START_S
        for parent in self.all():
            if not parent.ready and parent.made_at < since:
                self._fail(parent, f"it was not ready after {START_S:g} seconds")
        return not all(parent.link.check(self._stall_timeout_s) for parent in self._by_names.values() if parent.ready)

    def close(self) -> None:
        """End every parent process and all children."""
        for parent in self._by_names.values():
            parent.link.close()

    def _watch(self, parent: Parent, loop: EventLoop) -> None:
        loop.watch(parent.link.control.fileno(), lambda _: self._on_readable(parent))

    def _on_readable(self, parent: Parent) -> None:
        try:
            message = parent.link.receive() if parent.ready else parent.link.greet()
        except BlockingIOError:
            return
        except OSError:
            message = None
        if parent.ready:
            self._on_message(parent, message)
        elif (why := orders.start_failure(message)) is not None:
            self._fail(parent, why)
        else:
            self.mark_ready(parent)
            self._on_settled(parent)

    def _fail(self, parent: Parent, why: str) -> None:
        """Drop a parent that could not be started, and do not retry it; programs import its modules themselves."""
        print(
            f"A process with the preloaded modules {', '.join(parent.names)} cannot be started: {why}", file=sys.stderr
        )
        self._failed.add(parent.names)
        self.drop(parent)
        self._on_settled(parent)

    def _use(self, names: tuple[str, ...]) -> Parent:
        """Return the parent with the modules ``names``, and count the use; if it cannot be started, use another parent.

        The other parent is the one with all preloaded modules. If that cannot be started either, it is the light
        parent, which has only the standard library.
        """
        found = self._by_names.get(names)
        if found is None:
            found = self._try_make(names) or self._by_names.get(self._all) or self._try_make(self._all) or self.first
        for parent in self._by_names.values():
            parent.use *= _FADING
        found.use += 1.0
        found.used_at = time.monotonic()
        found.retiring = False
        return found

    def _try_make(self, names: tuple[str, ...]) -> Parent | None:
        """Start a parent; ``None`` if that fails, or if as many parents exist as are allowed.

        Until the parent with all preloaded modules exists, one of the allowed parents is reserved for it.
        """
        if names in self._failed or names in self._by_names:
            return None
        kept = 0 if names == self._all or self._all in self._by_names else 1
        if len(self._by_names) + kept >= self._most:
            self._retire_one()
            return None
        try:
            return self._make(names)
        except OSError as error:  # no descriptors left
            print(
                f"A process with the preloaded modules {', '.join(names)} cannot be started now: {error}",
                file=sys.stderr,
            )
            return None

    def _make(self, names: tuple[str, ...]) -> Parent:
        parent = Parent(names, self._zygote.make_parent(list(names)))
        self._by_names[names] = parent
        if self._loop is not None:
            self._watch(parent, self._loop)
        return parent

    def _retire_one(self) -> None:
        """Mark the least recently used parent to be ended if it was unused for ``_UNUSED_S``.

        While a parent is marked, no other parent is marked.
        """
        since = time.monotonic() - _UNUSED_S
        spare = [
            parent
            for parent in self._by_names.values()
            if parent.ready and parent is not self.first and parent.names != self._all and parent.used_at < since
        ]
        if spare and not any(parent.retiring for parent in spare):
            min(spare, key=lambda parent: parent.used_at).retiring = True
