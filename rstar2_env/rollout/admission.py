"""Which engine an episode plays on, and when it may begin: bookkeeping without a clock, a thread or an engine.

Covered: a queue that is first come, first served; the policies ``kv_aware``, ``least_requests`` and ``static`` behind
one protocol. ``scheduler.py`` drives it for real and ``benchmarks/scheduler_sim.py`` in simulated time. Not covered:
episodes of a group that share the cache of their prompt (each is counted with a prompt of its own, which errs on the
safe side).
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rstar2_env.errors import ConfigurationError
from rstar2_env.registry import Registry
from rstar2_env.rollout.lengths import BUCKETS, Lengths, bucket

BLOCK = 16
"""Tokens of a block of a paged cache: an episode wastes at most one."""


@dataclass(eq=False, slots=True)
class Stay:
    """One episode, from its asking for a place to its end.

    Attributes:
        number: Its place in the order of asking.
        prompt: Tokens of its prompt.
        most: Most tokens that may follow.
        tokens: Tokens that followed so far.
        engine: Where it plays; ``None`` while it waits.
        avoid: Engines that failed it.
    """

    number: int
    prompt: int
    most: int
    tokens: int = 0
    engine: int | None = None
    avoid: set[int] = field(default_factory=set)


class Policy(Protocol):
    """Chooses places. Made with the capacity of each engine in tokens; told of everything that happens."""

    def place(self, stay: Stay, usable: Sequence[int]) -> int | None:
        """The engine for the first in the queue, one of ``usable``, or ``None`` to let it wait.

        Whoever waits is asked about again when anything has changed. When nobody plays on the usable engines it must
        choose one, or all would wait for ever.
        """
        ...

    def enter(self, stay: Stay) -> None:
        """It plays on ``stay.engine`` from now on."""
        ...

    def grow(self, stay: Stay, tokens: int) -> None:
        """It is about to have so many tokens after its prompt; ``stay.tokens`` are those before."""
        ...

    def leave(self, stay: Stay, *, ended: bool) -> None:
        """It left its engine: at its own end, or cut off."""
        ...


policies: Registry[type[Policy]] = Registry("scheduling policy")


class Admission:
    """The queue, and who plays where.

    Args:
        capacities: Tokens that the cache of each engine holds.
        policy: Chooses places.
    """

    def __init__(self, capacities: Sequence[int], policy: Policy) -> None:
        self.capacities, self.policy = list(capacities), policy
        self._left_out: set[int] = set()
        self._queue: list[tuple[int, Stay]] = []
        self._asked = 0

    @property
    def waiting(self) -> int:
        """Episodes that wait for a place."""
        return len(self._queue)

    @property
    def in_use(self) -> list[int]:
        """Engines that take episodes."""
        return [engine for engine in range(len(self.capacities)) if engine not in self._left_out]

    def ask(self, prompt: int, most: int) -> Stay:
        """Join the queue.

        Raises:
            ConfigurationError: No engine could ever hold the prompt.
        """
        if prompt >= max(self.capacities):
            raise ConfigurationError(
                f"A prompt of {prompt} tokens and a turn do not fit into the cache of any engine; the largest holds "
                f"{max(self.capacities)}. Shorten the prompt, or give the engines more memory."
            )
        stay = Stay(self._asked, prompt, most)
        self._asked += 1
        heapq.heappush(self._queue, (stay.number, stay))
        return stay

    def admit(self) -> list[Stay]:
        """Give places to as many as there are places for, in the order of their asking."""
        placed = []
        while self._queue:
            stay = self._queue[0][1]
            usable = self.in_use
            engine = self.policy.place(stay, [e for e in usable if e not in stay.avoid] or usable) if usable else None
            if engine is None:
                break
            heapq.heappop(self._queue)
            stay.engine = engine
            self.policy.enter(stay)
            placed.append(stay)
        return placed

    def grow(self, stay: Stay, tokens: int) -> None:
        """Note how many tokens follow the prompt of an episode that plays."""
        if tokens > stay.tokens:
            self.policy.grow(stay, tokens)
            stay.tokens = tokens

    def leave(self, stay: Stay, *, ended: bool) -> None:
        """Give the place back, or leave the queue. Leaving twice is harmless."""
        if stay.engine is not None:
            self.policy.leave(stay, ended=ended)
            stay.engine = None
        elif any(waiting is stay for _, waiting in self._queue):
            self._queue = [entry for entry in self._queue if entry[1] is not stay]
            heapq.heapify(self._queue)

    def move(self, stay: Stay) -> None:
        """Give the place back and ask for one on another engine, before all who asked later."""
        if stay.engine is not None:
            stay.avoid.add(stay.engine)
        self.leave(stay, ended=False)
        heapq.heappush(self._queue, (stay.number, stay))

    def leave_out(self, engine: int) -> None:
        """Give nobody else a place on that engine; whoever plays there may stay."""
        self._left_out.add(engine)

    def take_back(self, engine: int) -> None:
        """Give places on it again."""
        self._left_out.discard(engine)


class _Counting:
    """Counts the episodes of each engine."""

    def __init__(self, capacities: Sequence[int]) -> None:
        self.episodes = [0] * len(capacities)

    def enter(self, stay: Stay) -> None:
        """See ``Policy``."""
        assert stay.engine is not None
        self.episodes[stay.engine] += 1

    def grow(self, stay: Stay, tokens: int) -> None:
        """See ``Policy``."""

    def leave(self, stay: Stay, *, ended: bool) -> None:
        """See ``Policy``."""
        assert stay.engine is not None
        self.episodes[stay.engine] -= 1


class Static(_Counting):
    """Deal the episodes out one after the other, whatever becomes of them; nobody waits."""

    def place(self, stay: Stay, usable: Sequence[int]) -> int | None:
        """See ``Policy``."""
        return usable[stay.number % len(usable)]


class LeastRequests(_Counting):
    """The engine with the fewest episodes; nobody waits."""

    def place(self, stay: Stay, usable: Sequence[int]) -> int | None:
        """See ``Policy``."""
        return min(usable, key=self.episodes.__getitem__)


class KvAware:
    """The engine with the most room for what its episodes will still need; wait when none has enough.

    What an engine's episodes will need is forecast from the lengths seen so far: for each moment ahead, the sum over
    its episodes of what each has by then times the chance that it still plays, and ``margin`` standard deviations of
    that sum; the highest of these moments counts. Without observations this is every episode's most.

    Args:
        capacities: Tokens that the cache of each engine holds.
        margin: Standard deviations kept free.
        overcommit: The most tokens that an engine's episodes could ever have, as a multiple of its capacity, are at
            most this, whatever the forecast says.
    """

    def __init__(self, capacities: Sequence[int], *, margin: float = 3.0, overcommit: float = 16.0) -> None:
        if margin < 0 or overcommit < 1:
            raise ConfigurationError(
                f"kv_aware needs margin >= 0 and overcommit >= 1, not {margin!r} and {overcommit!r}."
            )
        self._capacities = np.array(capacities, dtype=float)
        self._margin, self._overcommit = margin, overcommit
        self.lengths = Lengths()
        # For each engine and bucket: sums over its episodes of 1, prompt, most, and their products.
        self._sums = np.zeros((len(capacities), 6, BUCKETS))
        self._need = np.zeros(len(capacities))
        self._stale = np.zeros(len(capacities), dtype=bool)

    def place(self, stay: Stay, usable: Sequence[int]) -> int | None:
        """See ``Policy``."""
        self._refresh()
        # The same episode adds about as much anywhere: where there is most room it fits best.
        engine = max(usable, key=lambda e: self._capacities[e] - self._need[e])
        with_it = self._sums[engine].copy()
        _add(with_it, stay, bucket(stay.tokens, stay.most), 1)
        capacity = self._capacities[engine]
        if self._forecast(with_it) <= capacity and with_it[1:3].sum() <= self._overcommit * capacity:
            return engine
        # What no engine has room for, even empty, plays alone.
        empty = not self._sums[engine, 0].any()
        return engine if empty and capacity >= max(self._capacities[list(usable)]) else None

    def enter(self, stay: Stay) -> None:
        """See ``Policy``."""
        self.lengths.begin()
        at = bucket(stay.tokens, stay.most)
        if at:
            self._note(self.lengths.grow(0, at))
        self._change(stay, at, 1)

    def grow(self, stay: Stay, tokens: int) -> None:
        """See ``Policy``."""
        before, now = bucket(stay.tokens, stay.most), bucket(tokens, stay.most)
        if now > before:
            self._change(stay, before, -1)
            self._change(stay, now, 1)
            self._note(self.lengths.grow(before, now))

    def leave(self, stay: Stay, *, ended: bool) -> None:
        """See ``Policy``."""
        at = bucket(stay.tokens, stay.most)
        self._change(stay, at, -1)
        self._note(self.lengths.end(at, seen=ended))

    def need(self, engine: int) -> float:
        """Tokens that the episodes of an engine are forecast to need at once."""
        self._refresh()
        return float(self._need[engine])

    def _change(self, stay: Stay, at: int, sign: int) -> None:
        assert stay.engine is not None
        _add(self._sums[stay.engine], stay, at, sign)
        self._stale[stay.engine] = True

    def _note(self, tables_changed: bool) -> None:
        if tables_changed:
            self._stale[:] = True

    def _refresh(self) -> None:
        for engine in np.flatnonzero(self._stale):
            self._need[engine] = self._forecast(self._sums[engine])
        self._stale[:] = False

    def _forecast(self, sums: NDArray[np.float64]) -> float:
        mean = sums[1:3].ravel() @ self.lengths.mean_table
        variance = sums[3:].ravel() @ self.lengths.variance_table
        peak = float((mean + self._margin * np.sqrt(np.maximum(variance, 0.0))).max())
        return min(peak, float(sums[1:3].sum()))


def _add(sums: NDArray[np.float64], stay: Stay, at: int, sign: int) -> None:
    prompt, most = stay.prompt + BLOCK, stay.most
    sums[:, at] += (sign, sign * prompt, sign * most, sign * prompt**2, sign * prompt * most, sign * most**2)


policies.register("kv_aware", KvAware)
policies.register("least_requests", LeastRequests)
policies.register("static", Static)
