"""``EventLoop``: the warden's event loop, with callbacks for file descriptors and timers.

The loop is minimal, since it runs a dozen rounds per call. If a callback that has an owner (a child) raises, the error
is reported for that owner and the loop continues.
"""

from __future__ import annotations

import heapq
import itertools
import select
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

IN, OUT, ENDED = select.EPOLLIN, select.EPOLLOUT, select.EPOLLHUP | select.EPOLLERR
"""Events of a descriptor: it can be read, it can be written, the other side closed it. ``ENDED`` is always reported."""

Callback = Callable[[int], None]


class EventLoop:
    """Waits for file descriptors and timers, and calls their callbacks, until it is stopped.

    Args:
        on_error: Called with the owner of a failed callback, and the exception.

    Attributes:
        running: True until ``stop`` is called.
    """

    def __init__(self, on_error: Callable[[Any, Exception], None]) -> None:
        self._on_error = on_error
        self._epoll = select.epoll()
        self._callbacks: dict[int, tuple[Callback, Any]] = {}
        self._timers: list[tuple[float, int, Callable[[], None], Any]] = []
        self._order = itertools.count()
        self.running = True

    def run(self) -> None:
        """Call the callbacks of ready descriptors and due timers, until ``stop`` is called."""
        while self.running:
            timeout = max(0.0, self._timers[0][0] - time.monotonic()) if self._timers else -1
            for descriptor, events in self._epoll.poll(timeout):
                # An earlier callback of this round may have closed a descriptor. If it opened a new one with the same
                # number, the new callback is called for nothing, which non-blocking callbacks tolerate.
                found = self._callbacks.get(descriptor)
                if found is None:
                    continue
                callback, owner = found
                self._call(owner, callback, events)
            now = time.monotonic()
            while self._timers and self._timers[0][0] <= now:
                _, _, what, owner = heapq.heappop(self._timers)
                self._call(owner, what)

    def stop(self) -> None:
        """Make ``run`` return at the end of its current round."""
        self.running = False

    def watch(self, descriptor: int, callback: Callback, events: int = IN, owner: Any = None) -> None:
        """Call ``callback`` whenever a descriptor is ready, with the events that occurred.

        Args:
            descriptor: Descriptor to watch.
            callback: Called with the events.
            events: Bits of the events to wait for.
            owner: Object, such as a child, for which the callback works: if the callback raises, ``on_error`` receives
                the owner and the exception. With ``None``, the exception ends the loop.
        """
        self._callbacks[descriptor] = callback, owner
        self._epoll.register(descriptor, events)

    def rewatch(self, descriptor: int, events: int) -> None:
        """Change the events for which a descriptor is watched."""
        self._epoll.modify(descriptor, events)

    def unwatch(self, descriptor: int) -> None:
        """Stop watching a descriptor that stays open."""
        self._callbacks.pop(descriptor, None)
        self._epoll.unregister(descriptor)

    def forget(self, descriptor: int) -> None:
        """Forget the callback of a descriptor that the caller closes next; the close removes it from epoll."""
        self._callbacks.pop(descriptor, None)

    def call_at(self, when: float, what: Callable[[], None], owner: Any = None) -> None:
        """Call ``what`` at a time of the clock ``time.monotonic``; for ``owner`` see ``watch``."""
        heapq.heappush(self._timers, (when, next(self._order), what, owner))

    def _call(self, owner: Any, function: Callable[..., None], *arguments: int) -> None:
        """Call a callback. If it raises, pass ``owner`` and the exception to ``on_error``.

        If ``owner`` is ``None``, raise the exception, which ends the loop.
        """
        try:
            function(*arguments)
        except Exception as error:
            if owner is None:
                raise
            self._on_error(owner, error)


def log_error(error: Exception) -> None:
    """Write an internal error to standard error."""
    lines = "".join(traceback.format_exception(error))
    print(f"An internal error of the supervising process (warden) ended one program: {lines}", file=sys.stderr)
