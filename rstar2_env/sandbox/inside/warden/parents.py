"""The parents of a warden: which there are, which of them a program is forked from, when one is made or ended.

A light one, which has imported nothing beyond the standard library, is there from the start. Others have exactly the
preloaded modules that a program names, and are made when the first such program comes. Where there are as many as may
be, one that has not been used for a while makes room; otherwise the parent with all modules serves.

Covered: the choice, growth, ends, and how much each is used. Not covered: children (``pool``), reading what a program
names (``imports``).
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
"""Seconds without a call after which a parent may have to make room for another."""
_FADING = 0.99
"""What is left of the weight of earlier calls after each call, in the shares of use."""


class Parents:
    """All parents of one warden.

    Args:
        options: ``preload``, ``parents`` (the largest number, from 1), ``stall_s``.
        zygote: Makes them.

    Raises:
        RuntimeError: The first could not be made; the message says why.
    """

    def __init__(self, options: dict[str, Any], zygote: ZygoteLink) -> None:
        self._zygote = zygote
        self._all: tuple[str, ...] = tuple(options["preload"])
        self._most: int = options["parents"]
        self._stall_s: float = options["stall_s"]
        self._imports = Imports(self._all)
        self._by_names: dict[tuple[str, ...], Parent] = {}
        self._failed: set[tuple[str, ...]] = set()
        self._loop: EventLoop | None = None
        self._on_message: Callable[[Parent, orders.OrderReply | None], None]
        self._on_settled: Callable[[Parent], None]
        names = self._all if self._most == 1 else ()
        try:
            first = self._make(names)
            answer = first.link.wait(START_S)
            why = "it ended while it was starting" if answer is None else answer.text
        except OSError as error:
            answer, why = None, str(error)
        if answer is None or answer.kind != orders.READY:
            raise RuntimeError(f"The zygote did not start: {why}.")
        first.use = 1.0
        self.first = first
        self.settle(first)

    def all(self) -> list[Parent]:
        """Every parent that there is."""
        return list(self._by_names.values())

    def for_program(self, texts: Iterable[bytes]) -> Parent:
        """The parent for a program.

        Args:
            texts: Its source, and that of what it may import.
        """
        if self._most == 1 or not self._all:
            return self.first
        return self._used(self._imports.named(texts))

    def for_session(self) -> Parent:
        """The parent for a session, whose later cells may import anything."""
        return self.first if self._most == 1 or not self._all else self._used(self._all)

    def attend(
        self,
        loop: EventLoop,
        on_message: Callable[[Parent, orders.OrderReply | None], None],
        on_settled: Callable[[Parent], None],
    ) -> None:
        """Listen to every parent from here on.

        Args:
            loop: Where.
            on_message: Called with each message of a parent that is ready; ``None`` when it is gone.
            on_settled: Called with a parent that is ready now, or that could not be made, when it is not ``grown``.
        """
        self._loop, self._on_message, self._on_settled = loop, on_message, on_settled
        for parent in self.all():
            self._hear(parent, loop)

    def settle(self, parent: Parent) -> None:
        """Note that a parent is ready."""
        parent.link.control.settimeout(self._stall_s)
        parent.grown = True

    def drop(self, parent: Parent) -> None:
        """Forget a parent, and let it end."""
        if self._by_names.get(parent.names) is parent:
            del self._by_names[parent.names]
        if self._loop is not None:
            self._loop.forget(parent.link.control.fileno())
        parent.link.close()

    def share(self, parent: Parent) -> float:
        """Its share of recent calls."""
        return parent.use / (sum(other.use for other in self._by_names.values()) or 1.0)

    def stalled(self) -> bool:
        """Ask each whether it is alive; give up one that is not made in time. Returns whether one owes an answer."""
        since = time.monotonic() - START_S
        for parent in self.all():
            if not parent.grown and parent.made_at < since:
                self._fail(parent, f"it was not ready after {START_S:g} seconds")
        return not all(parent.link.check(self._stall_s) for parent in self._by_names.values() if parent.grown)

    def close(self) -> None:
        """End every parent and, with it, every child."""
        for parent in self._by_names.values():
            parent.link.close()

    def _hear(self, parent: Parent, loop: EventLoop) -> None:
        loop.watch(parent.link.control.fileno(), lambda _: self._on_readable(parent))

    def _on_readable(self, parent: Parent) -> None:
        try:
            message = parent.link.receive() if parent.grown else parent.link.greet()
        except BlockingIOError:
            return
        except OSError:
            message = None
        if parent.grown:
            self._on_message(parent, message)
        elif message is not None and message.kind == orders.READY:
            self.settle(parent)
            self._on_settled(parent)
        else:
            self._fail(parent, "it ended while it was starting" if message is None else message.text)

    def _fail(self, parent: Parent, why: str) -> None:
        """Note that a parent could not be made. It is not tried again, and its programs import for themselves."""
        print(f"no parent with {', '.join(parent.names)}: {why}", file=sys.stderr)
        self._failed.add(parent.names)
        self.drop(parent)
        self._on_settled(parent)

    def _used(self, names: tuple[str, ...]) -> Parent:
        """The parent for a need, made if necessary; counts the use."""
        found = self._by_names.get(names)
        if found is None:
            found = self._grow(names) or self._by_names.get(self._all) or self._grow(self._all) or self.first
        for parent in self._by_names.values():
            parent.use *= _FADING
        found.use += 1.0
        found.used_at = time.monotonic()
        found.retiring = False
        return found

    def _grow(self, names: tuple[str, ...]) -> Parent | None:
        """Have a parent made; ``None`` where it cannot be, or where its place is kept for the one with all modules."""
        if names in self._failed or names in self._by_names:
            return None
        kept = 0 if names == self._all or self._all in self._by_names else 1
        if len(self._by_names) + kept >= self._most:
            self._retire_one()
            return None
        try:
            return self._make(names)
        except OSError as error:  # no descriptors left
            print(f"no parent with {', '.join(names)} for now: {error}", file=sys.stderr)
            return None

    def _make(self, names: tuple[str, ...]) -> Parent:
        parent = Parent(names, self._zygote.grow(list(names)))
        self._by_names[names] = parent
        if self._loop is not None:
            self._hear(parent, self._loop)
        return parent

    def _retire_one(self) -> None:
        """Let the parent that was used least recently end, if that is long ago."""
        since = time.monotonic() - _UNUSED_S
        spare = [
            parent
            for parent in self._by_names.values()
            if parent.grown and parent is not self.first and parent.names != self._all and parent.used_at < since
        ]
        if spare and not any(parent.retiring for parent in spare):
            min(spare, key=lambda parent: parent.used_at).retiring = True
