"""``InFlight``: adapts the number of concurrent episodes to the load of the engines' caches.

The number grows gradually while the caches have room, and is cut at once when they are full, as in congestion control
(V. Jacobson, Congestion avoidance and control, 1988). It grows only as episodes end, since a new episode fills its
cache only later. One instance serves a whole run with all its processes and engines, so the same capacity is not
counted twice. The module does only the bookkeeping, without clocks, threads or engines. Not covered: the fixed limit
``max_in_flight`` (``rstar2_env.rollout.player``); the choice of the engine for an episode; cache kept for episodes
whose tools are running.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rstar2_env.core.options.declare import CheckedOptions, option
from rstar2_env.rollout.engine import EngineStats


@dataclass(frozen=True)
class GrowthRules(CheckedOptions):
    """Rules for increasing and decreasing the number of episodes in flight.

    Attributes:
        grow_below: The number grows while less than this share of the fullest engine's cache is in use.
        cut_above: The number shrinks when more than this share of the fullest engine's cache is in use; a share below 1
            acts before requests lose their cache.
        growth: Factor by which the number n grows if n episodes have ended since the last observation; if only
            ``s * n`` episodes have ended (s < 1), the factor is ``growth ** s``.
        cut: Factor by which the number shrinks.
    """

    grow_below: float = option(0.75, above=0, below=1)
    cut_above: float = option(0.95, above=0, most=1)
    growth: float = option(1.25, above=1)
    cut: float = option(0.8, above=0, below=1)


class InFlight:
    """Adapts the maximum number of episodes in flight to the load of the engines' caches.

    Args:
        first: Initial number of episodes; for example, as many as fit into the caches at maximum length.
        most: Largest number of episodes.
        least: Smallest number of episodes.
        rules: When the number grows and shrinks; ``None`` means the defaults of ``GrowthRules``.
    """

    def __init__(self, first: int, most: int, least: int = 1, rules: GrowthRules | None = None) -> None:
        self._most, self._least, self._rules = most, min(least, most), rules or GrowthRules()
        self._number = float(min(max(first, self._least), most))
        self._ended: int | None = None
        self._preemptions: list[int] = []
        self._waited = self._draining = False

    @property
    def number(self) -> int:
        """The number of episodes that may be in flight now."""
        return int(self._number)

    def begin(self) -> None:
        """Begin a new rollout: in the next calls of ``look``, ``ended`` counts only episodes of this rollout."""
        self._ended, self._draining = None, False

    def look(self, loads: Sequence[EngineStats], *, playing: int, ended: int) -> int:
        """Adapt the number of episodes that may be in flight to the current load, and return the new number.

        Args:
            loads: Loads of all engines, always in the same order; empty if they are unknown.
            playing: Number of episodes in flight.
            ended: Number of episodes of this rollout that have ended.
        """
        since, self._ended = ended - (self._ended or 0), ended
        if not loads:
            return self.number
        counted = [load.preemptions for load in loads]
        known = len(counted) == len(self._preemptions)
        # The counters of a restarted engine begin at 0.
        lost = known and any(now > before for now, before in zip(counted, self._preemptions, strict=True))
        self._preemptions = counted
        fullest = max(load.kv_usage for load in loads)
        queues = any(load.waiting for load in loads)
        # A request may wait briefly without a lack of capacity, so two observations in a row are needed.
        waits, self._waited = queues and self._waited, queues
        rules = self._rules
        if self._draining and playing <= self._number:
            self._draining = False
        if lost or fullest > rules.cut_above:
            # After a cut, the episodes above the new number still fill the caches, which is not a new signal.
            if not self._draining:
                self._number = max(self._least, rules.cut * min(playing, self._number))
                self._draining = True
        elif not waits and fullest < rules.grow_below and playing >= self.number:
            # At most one turnover per observation, since the effect is only visible afterwards.
            turnovers = min(1.0, since / self._number)
            self._number = min(self._most, self._number * rules.growth**turnovers)
        return self.number
