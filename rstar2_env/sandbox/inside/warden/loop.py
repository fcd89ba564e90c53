"""The warden's event loop: descriptors and times, each with what to call. Small, as it runs a dozen times per call."""

from __future__ import annotations

import heapq
import itertools
import select
import time
from collections.abc import Callable

IN, OUT, ENDED = select.EPOLLIN, select.EPOLLOUT, select.EPOLLHUP | select.EPOLLERR
"""Events; ``ENDED`` is always reported when the other side is closed."""

Callback = Callable[[int], None]


class Loop:
    """Waits for descriptors and times until it is stopped."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._callbacks: dict[int, Callback] = {}
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._running = True

    def run(self) -> None:
        """Turn until ``stop``."""
        while self._running:
            timeout = max(0.0, self._timers[0][0] - time.monotonic()) if self._timers else -1
            for descriptor, events in self._epoll.poll(timeout):
                # One that an earlier callback of this round closed is gone; one that it opened anew must cope with
                # being called for nothing, as every callback on a non-blocking descriptor does.
                callback = self._callbacks.get(descriptor)
                if callback is not None:
                    callback(events)
            now = time.monotonic()
            while self._timers and self._timers[0][0] <= now:
                heapq.heappop(self._timers)[2]()

    def stop(self) -> None:
        """Return from ``run`` after this round."""
        self._running = False

    @property
    def running(self) -> bool:
        """Whether ``stop`` has not been called."""
        return self._running

    def watch(self, descriptor: int, callback: Callback, events: int = IN) -> None:
        """Call ``callback`` with the events whenever a descriptor is ready.

        Args:
            descriptor: What to watch.
            callback: Called with the events.
            events: Bits of the events to wait for.
        """
        self._callbacks[descriptor] = callback
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

    def at(self, when: float, what: Callable[[], None]) -> None:
        """Call ``what`` at a time of ``time.monotonic``."""
        heapq.heappush(self._timers, (when, next(self._order), what))
