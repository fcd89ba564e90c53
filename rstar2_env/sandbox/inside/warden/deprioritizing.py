"""Lowers the priority of long-running programs, and extends their deadlines by the time that they waited for a core.

A program that has run for ``AFTER_S`` gets a lower CPU weight and no longer counts towards the limit ``workers``, so
that the next call starts. The time during which it was ready to run but had no core, as reported by the kernel, extends
its deadline, to at most ``MOST`` times its wall-clock limit.

Covered: when and how many programs are deprioritized, and the deadline of every call outside a session. Not covered:
how weights are lowered (the zygote's ``priority``), and cells, the calls of a session (``cells``). A cell's process
outlives the cell, and not every machine could restore its weight, so cells are not deprioritized, and their deadlines
are not extended.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..orders import DEPRIORITIZE, OrderReply

if TYPE_CHECKING:
    from .child import Child
    from .loop import EventLoop

AFTER_S = 0.25
"""Run time in seconds after which a program is deprioritized."""
MOST = 4
"""Longest run time of a deprioritized program, as a multiple of its wall-clock limit."""
_STEP_S = 0.02
"""Shortest time, in seconds, until a program whose deadline was extended is checked again."""


@dataclass(eq=False)
class Deprioritizer:
    """Enforces the deadlines of calls, and deprioritizes long-running programs.

    Attributes:
        options: A dict with the key ``deprioritize``: how many programs may be deprioritized at a time.
        loop: Event loop for the timers.
        stop: Function that ends a program for a given reason.
        on_deprioritized: Function that is called after a program was deprioritized.
    """

    options: dict[str, Any]
    loop: EventLoop
    stop: Callable[[Child, str], None]
    on_deprioritized: Callable[[], None]

    def __post_init__(self) -> None:
        """Start without deprioritized programs."""
        self._most: int = self.options["deprioritize"]
        self._deprioritized: dict[Child, bool] = {}  # programs with an order to lower their weight; true once confirmed

    @property
    def count(self) -> int:
        """Return the number of running programs that are deprioritized or whose deprioritization is ordered."""
        return len(self._deprioritized)

    def begin(self, child: Child) -> None:
        """For a call that has just started, schedule the first check whether it must be deprioritized or ended."""
        first = min(child.started_at + AFTER_S, _deadline(child)) if self._most else _deadline(child)
        self.loop.call_at(first, lambda: self._check(child), child)

    def end(self, child: Child) -> bool:
        """Forget a call that has ended; return whether its program was deprioritized."""
        return self._deprioritized.pop(child, False)

    def on_reply(self, child: Child, reply: OrderReply) -> None:
        """Handle a parent's reply: whether the CPU weight is lowered, and how long the program waited for a core."""
        if child not in self._deprioritized or not _runs(child):
            return
        if self._deprioritized[child]:
            self._extend(child, reply.cpu_s)
        elif reply.status:
            self._deprioritized[child] = True
            child.slot.lower()
            self.loop.call_at(_deadline(child, MOST), lambda: self.stop(child, "timeout"), child)
            self.on_deprioritized()
        else:
            del self._deprioritized[child]
            self._check_later(child)

    def _check(self, child: Child) -> None:
        """Deprioritize a program if the number of deprioritized programs allows it.

        At its deadline, end the program; if it is deprioritized, first request how long it has waited for a core.
        """
        if not _runs(child):
            return
        if time.monotonic() >= _deadline(child):
            if self._deprioritized.get(child):
                child.order(DEPRIORITIZE)
            else:
                self.stop(child, "timeout")
        elif len(self._deprioritized) < self._most:
            self._deprioritized[child] = False
            child.order(DEPRIORITIZE)
            self.loop.call_at(_deadline(child), lambda: self._check(child), child)
        else:
            self._check_later(child)

    def _check_later(self, child: Child) -> None:
        self.loop.call_at(min(time.monotonic() + AFTER_S, _deadline(child)), lambda: self._check(child), child)

    def _extend(self, child: Child, waited_s: float) -> None:
        now, deadline = time.monotonic(), _deadline(child) + waited_s
        if deadline <= now:
            self.stop(child, "timeout")
        else:
            self.loop.call_at(max(deadline, now + _STEP_S), lambda: self._check(child), child)


def _runs(child: Child) -> bool:
    return child.call is not None and child.stopped_for is None and child.wait_status is None


def _deadline(child: Child, times: int = 1) -> float:
    """Return the time (of ``time.monotonic``) at which a call has run for ``times`` times its wall-clock limit."""
    return child.started_at + times * float(child.limits["wall_s"])
