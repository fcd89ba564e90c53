"""Programs that run for long give way to short ones, and their clock stands still while they are held back.

A program that has run for ``AFTER_S`` gets a lower weight on the cores, and is not counted among the workers any more,
so that the next call starts. The time for which the kernel says that it could have run and had no core is added to its
wall-clock limit, up to ``MOST`` times that limit in all.

Covered: when a program gives way, how many do, and the deadline of every call that is no cell. Not covered: lowering
weights (the zygote's ``deprioritize``), and cells (``cells``), whose processes outlive them and could not everywhere be
raised again: they keep their weight, their worker and their deadline.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..orders import DEPRIORITIZE, OrderReply

if TYPE_CHECKING:
    from .child import Child
    from .loop import EventLoop

AFTER_S = 0.25
"""Seconds after which a program gives way."""
MOST = 4
"""How many times its wall-clock limit a program may run, whatever held it back."""
_STEP_S = 0.02
"""The shortest time until a program whose limit was put off is looked at again."""


class Deprioritizer:
    """Keeps the time of calls, and lets those that run for long give way.

    Args:
        options: ``deprioritize``, the largest number of programs that have given way and still run.
        loop: Where the timers run.
        stop: Ends a program for a reason.
        gone: Called when a program has given way.
    """

    def __init__(
        self,
        options: dict[str, Any],
        loop: EventLoop,
        stop: Callable[[Child, str], None],
        gone: Callable[[], None],
    ) -> None:
        self._most: int = options["deprioritize"]
        self._loop = loop
        self._stop = stop
        self._gone = gone
        self._asked: dict[Child, bool] = {}  # whether it has given way, for those that were told to

    @property
    def count(self) -> int:
        """How many programs that have given way still run, with those that were just told to."""
        return len(self._asked)

    def begin(self, child: Child) -> None:
        """Keep the time of a call that has just begun."""
        first = min(child.started_at + AFTER_S, _deadline(child)) if self._most else _deadline(child)
        self._loop.call_at(first, lambda: self._look(child), child)

    def end(self, child: Child) -> bool:
        """Note the end of a call; returns whether it had given way."""
        return self._asked.pop(child, False)

    def on_reply(self, child: Child, reply: OrderReply) -> None:
        """Note whether a program gives way, and for how long it was held back until now."""
        if child not in self._asked or not _runs(child):
            return
        if self._asked[child]:
            self._put_off(child, reply.cpu_s)
        elif reply.status:
            self._asked[child] = True
            self._loop.call_at(_deadline(child, MOST), lambda: self._stop(child, "timeout"), child)
            self._gone()
        else:
            del self._asked[child]
            self._look_again(child)

    def _look(self, child: Child) -> None:
        """Let a program give way, if there is room; at its limit, ask for how long it was held back, or end it."""
        if not _runs(child):
            return
        if time.monotonic() >= _deadline(child):
            if self._asked.get(child):
                child.order(DEPRIORITIZE)
            else:
                self._stop(child, "timeout")
        elif len(self._asked) < self._most:
            self._asked[child] = False
            child.order(DEPRIORITIZE)
            self._loop.call_at(_deadline(child), lambda: self._look(child), child)
        else:
            self._look_again(child)

    def _look_again(self, child: Child) -> None:
        self._loop.call_at(min(time.monotonic() + AFTER_S, _deadline(child)), lambda: self._look(child), child)

    def _put_off(self, child: Child, held_back_s: float) -> None:
        now, deadline = time.monotonic(), _deadline(child) + held_back_s
        if deadline <= now:
            self._stop(child, "timeout")
        else:
            self._loop.call_at(max(deadline, now + _STEP_S), lambda: self._look(child), child)


def _runs(child: Child) -> bool:
    return child.call is not None and child.stopped_for is None and child.wait_status is None


def _deadline(child: Child, times: int = 1) -> float:
    """When a call has used up its wall-clock limit, or several times that."""
    return child.started_at + times * float(child.limits["wall_s"])
