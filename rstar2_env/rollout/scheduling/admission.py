"""Which engine an episode plays on, and when it may begin: bookkeeping without a clock, a thread or an engine.

Covered: a queue that is first come, first served; policies by name, of which ``least_requests`` and ``static`` are
here, and ``kv_aware`` is in ``kv_aware.py``. ``scheduler.py`` drives it for real and ``benchmarks/scheduler_sim.py`` in
simulated time. Not covered: changing the order of the queue.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.registry import Registry


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

    def turn_begins(self, stay: Stay) -> None:
        """Its engine begins to generate a turn, after ``stay.tokens``."""
        ...

    def turn_ends(self, stay: Stay, tokens: int) -> None:
        """The turn made so many tokens; ``stay.tokens`` are all, with them."""
        ...

    def leave(self, stay: Stay, *, ended: bool) -> None:
        """It left its engine: at its own end, or cut off."""
        ...


POLICIES: Registry[type[Policy]] = Registry("scheduling policy")


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

    def turn_begins(self, stay: Stay, tokens: int) -> None:
        """An episode that plays, with so many tokens after its prompt, asks its engine for a turn."""
        stay.tokens = tokens
        self.policy.turn_begins(stay)

    def turn_ends(self, stay: Stay, tokens: int) -> None:
        """Its turn is there; it has so many tokens after its prompt now."""
        made, stay.tokens = tokens - stay.tokens, tokens
        self.policy.turn_ends(stay, made)

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

    def turn_begins(self, stay: Stay) -> None:
        """See ``Policy``."""

    def turn_ends(self, stay: Stay, tokens: int) -> None:
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


POLICIES.register("least_requests", LeastRequests)
POLICIES.register("static", Static)
