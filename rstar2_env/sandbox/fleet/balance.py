"""``Balance``: distributes calls over servers, by capacity, calls in flight, and the cost of a request.

Covered: the size of batches, the wait until a batch is full, the balance between servers. Not covered: how calls are
sent, and calls that must go to a certain server (``dispatch``).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence

from rstar2_env.sandbox.fleet.link import Link


class Balance:
    """Decides how many calls to send to which server next.

    Args:
        batch: Largest number of calls in one request.
        linger_s: Seconds that calls wait for further calls, to share one request, if every server is busy.
        resume: Called when calls have waited for ``linger_s`` seconds, to send them.
    """

    def __init__(self, batch: int, linger_s: float, resume: Callable[[], None]) -> None:
        self._batch = batch
        self._linger_s = linger_s
        self._resume = resume
        self._timer: asyncio.TimerHandle | None = None
        self._lingered = False

    def choose(self, links: Sequence[Link], waiting: int) -> tuple[Link, int] | None:
        """Choose the server with the fewest calls in flight per slot, and the number of calls to send to it.

        A slot is room for one concurrent program. Among equal servers, the one with the fewest sessions per slot is
        chosen. A server whose sandbox fails is chosen last.

        Returns:
            The server and the number of calls; ``None`` if no server can receive a call now.
        """
        slots = sum(link.slots for link in links if link.up)
        calls = waiting + sum(link.in_flight for link in links if link.up)
        for link in sorted(links, key=_burden):
            share = max(link.slots, math.ceil(calls * link.slots / max(1, slots))) - link.in_flight
            if (count := min(self.takes(link, waiting), share)) > 0:
                return link, count
        return None

    def takes(self, link: Link, waiting: int) -> int:
        """Return how many of the waiting calls to send to a server now.

        A server with a free slot gets calls immediately. If all its slots are in use and several calls wait, they wait
        up to ``linger_s`` for further calls, so that one request contains more of them. A server with two calls per
        slot gets at least half a batch or nothing, since a request costs as much as a short call.
        """
        loop = asyncio.get_running_loop()
        room = min(2 * link.slots + self._batch, link.room) - link.in_flight
        if not link.up or link.blocked_until > loop.time() or room <= 0:
            return 0
        if link.strikes:  # a failing server answers at once, and would otherwise receive (and fail) most calls
            return int(link.in_flight == 0)
        if link.in_flight >= 2 * link.slots:
            return min(room, self._batch) if min(room, waiting) >= max(1, self._batch // 2) else 0
        if link.in_flight >= link.slots and 1 < waiting < self._batch and self._linger_s > 0 and not self._lingered:
            if self._timer is None:
                self._timer = loop.call_later(self._linger_s, self._linger_over)
            return 0
        return min(room, self._batch)

    def _linger_over(self) -> None:
        self._timer, self._lingered = None, True
        self._resume()
        self._lingered = False


def _burden(link: Link) -> tuple[bool, float, float]:
    return link.strikes > 0, link.in_flight / link.slots, link.sessions / link.slots
