"""``InFlight``: how many episodes play at the same time, found from how full the engines' caches are.

Additive increase and multiplicative decrease, as congestion control does it (V. Jacobson, Congestion avoidance and
control, 1988), with one turnover of the episodes as its round trip: an episode that begins today fills its cache only
later, so growth waits for episodes to end. One of these serves a whole run, however many processes and engines it has,
so that nobody counts the same room twice. Bookkeeping without clocks, threads or engines. Not covered: which engine an
episode goes to; what a cache keeps for episodes whose tools run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rstar2_env.core.options.declare import CheckedOptions, option
from rstar2_env.rollout.engine import EngineStats


@dataclass(frozen=True)
class GrowthRules(CheckedOptions):
    """When the number of episodes in flight grows and shrinks.

    Attributes:
        grow_below: Share of a cache in use, on the fullest engine, below which the number grows.
        cut_above: Share above which it shrinks, before a request loses its cache.
        growth: Factor by which it grows while as many episodes end as are in flight.
        cut: Factor by which it shrinks.
    """

    grow_below: float = option(0.75, above=0, below=1)
    cut_above: float = option(0.95, above=0, most=1)
    growth: float = option(1.25, above=1)
    cut: float = option(0.8, above=0, below=1)


class InFlight:
    """The number of episodes in flight.

    Args:
        first: The number to begin with; as many as fit into the caches if all grow to their longest, say.
        most: Largest number.
        least: Smallest number.
        rules: When it grows and shrinks.
    """

    def __init__(self, first: int, most: int, least: int = 1, rules: GrowthRules | None = None) -> None:
        self._most, self._least, self._rules = most, min(least, most), rules or GrowthRules()
        self._number = float(min(max(first, self._least), most))
        self._ended: int | None = None
        self._preemptions: list[int] = []
        self._waited = self._draining = False

    @property
    def number(self) -> int:
        """The present number."""
        return int(self._number)

    def begin(self) -> None:
        """Episodes are counted from 0 again, as in a new rollout."""
        self._ended, self._draining = None, False

    def look(self, loads: Sequence[EngineStats], *, playing: int, ended: int) -> int:
        """Take in the present load, and return the number of episodes that may be in flight.

        Args:
            loads: Of every engine, always in the same order; empty where nothing is known.
            playing: Episodes in flight.
            ended: Episodes that ended so far.
        """
        since, self._ended = ended - (self._ended or 0), ended
        if not loads:
            return self.number
        counted = [load.preemptions for load in loads]
        known = len(counted) == len(self._preemptions)
        # An engine that was restarted counts from 0 again.
        lost = known and any(now > before for now, before in zip(counted, self._preemptions, strict=True))
        self._preemptions = counted
        fullest = max(load.kv_usage for load in loads)
        queues = any(load.waiting for load in loads)
        # A request may wait for a moment without any lack of room: two looks in a row tell.
        waits, self._waited = queues and self._waited, queues
        rules = self._rules
        if self._draining and playing <= self._number:
            self._draining = False
        if lost or fullest > rules.cut_above:
            # Those that play on after a cut still fill the caches: nothing new is learned from that.
            if not self._draining:
                self._number = max(self._least, rules.cut * min(playing, self._number))
                self._draining = True
        elif not waits and fullest < rules.grow_below and playing >= self.number:
            # At most one turnover a look: what came of it is not seen before.
            turnovers = min(1.0, since / self._number)
            self._number = min(self._most, self._number * rules.growth**turnovers)
        return self.number
