"""The warden's event loop: descriptors and times, each with what to call. Small, as it runs a dozen times per call.

Whatever is called on behalf of an owner (a child) and raises costs that owner alone: the loop goes on.
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
"""Events; ``ENDED`` is always reported when the other side is closed."""

Callback = Callable[[int], None]


class EventLoop:
    """Waits for descriptors and times until it is stopped.

    Args:
        on_error: Called with the owner of what raised an exception, and the exception.
    """

    def __init__(self, on_error: Callable[[Any, Exception], None]) -> None:
        self._on_error = on_error
        self._epoll = select.epoll()
        self._callbacks: dict[int, tuple[Callback, Any]] = {}
        self._timers: list[tuple[float, int, Callable[[], None], Any]] = []
        self._order = itertools.count()
        self._running = True

    def run(self) -> None:
        """Turn until ``stop``."""
        while self._running:
            timeout = max(0.0, self._timers[0][0] - time.monotonic()) if self._timers else -1
            for descriptor, events in self._epoll.poll(timeout):
                # One that an earlier callback of this round closed is gone; one that it opened anew must cope with
                # being called for nothing, as every callback on a non-blocking descriptor does.
                found = self._callbacks.get(descriptor)
                if found is None:
                    continue
                callback, owner = found
                try:
                    callback(events)
                except Exception as error:
                    if owner is None:
                        raise
                    self._on_error(owner, error)
            now = time.monotonic()
            while self._timers and self._timers[0][0] <= now:
                _, _, what, owner = heapq.heappop(self._timers)
                try:
                    what()
                except Exception as error:
                    if owner is None:
                        raise
                    self._on_error(owner, error)

    def stop(self) -> None:
        """Return from ``run`` after this round."""
        self._running = False

    @property
    def running(self) -> bool:
        """Whether ``stop`` has not been called."""
        return self._running

    def watch(self, descriptor: int, callback: Callback, events: int = IN, owner: Any = None) -> None:
        """Call ``callback`` with the events whenever a descriptor is ready.

        Args:
            descriptor: What to watch.
            callback: Called with the events.
            events: Bits of the events to wait for.
            owner: Who bears the consequences of an exception; with ``None`` it ends the loop.
        """
        self._callbacks[descriptor] = callback, owner
        self._epoll.register(descriptor, events)

    def rewatch(self, descriptor: int, events: int) -> None:
        """Wait for other events of a descriptor that is watched."""
        self._epoll.modify(descriptor, events)

    def unwatch(self, descriptor: int) -> None:
        """Stop watching a descriptor that stays open."""
        self._callbacks.pop(descriptor, None)
        self._epoll.unregister(descriptor)

    def forget(self, descriptor: int) -> None:
        """Stop watching a descriptor; the caller closes it next, which removes it from the kernel's list."""
        self._callbacks.pop(descriptor, None)

    def call_at(self, when: float, what: Callable[[], None], owner: Any = None) -> None:
        """Call ``what`` at a time of ``time.monotonic``; ``owner`` as for ``watch``."""
        heapq.heappush(self._timers, (when, next(self._order), what, owner))


def log_error(error: Exception) -> None:
    """Write an error of ours, for which one owner pays, to standard error."""
    lines = "".join(traceback.format_exception(error))
    print(f"An error in the warden, for which one call pays: {lines}", file=sys.stderr)
