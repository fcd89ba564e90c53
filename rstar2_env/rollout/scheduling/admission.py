"""Assigns episodes to engines and decides when they begin, without using clocks, threads or engines itself.

Covered: a first-come, first-served queue; scheduling policies by name: ``least_requests`` and ``static`` here,
``kv_aware`` in ``kv_aware.py``. ``several_engines.py`` uses it with engines, ``benchmarks/scheduler_sim.py`` in
simulated time. Not covered: changing the order of the queue, and the number of episodes that are played at once
(``rollout.max_in_flight``, which ``rstar2_env/rollout/player.py`` applies and ``adaptive_in_flight.py`` adapts).
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.registry import Registry


@dataclass(eq=False, slots=True)
class Stay:
    """One episode, from its request for a place (room in an engine's cache) to its end.

    Attributes:
        number: Position of the episode in the order of requests.
        prompt: Number of tokens of the prompt.
        most: Maximum number of tokens that may follow.
        tokens: Number of tokens that have followed so far.
        engine: Index of its engine; ``None`` while it waits.
        avoid: Engines on which one of its requests failed.
    """

    number: int
    prompt: int
    most: int
    tokens: int = 0
    engine: int | None = None
    avoid: set[int] = field(default_factory=set)


class SchedulingPolicy(Protocol):
    """Chooses engines for episodes.

    A policy is created with the cache capacity of each engine in tokens. ``place`` is called for waiting episodes;
    every other method is called when the event that it records happens.
    """

    def place(self, stay: Stay, usable: Sequence[int]) -> int | None:
        """Return the index of an engine, one of ``usable``, for the first waiting episode; ``None`` lets it wait.

        A waiting episode is reconsidered after every change. If no episode runs on the usable engines, the policy must
        choose one of them; otherwise all episodes would wait forever.
        """
        ...

    def enter(self, stay: Stay) -> None:
        """Record that an episode begins on the engine ``stay.engine``."""
        ...

    def turn_begins(self, stay: Stay) -> None:
        """Record that an engine begins to generate a turn of an episode, after ``stay.tokens`` tokens."""
        ...

    def turn_ends(self, stay: Stay, tokens: int) -> None:
        """Record that a turn of ``tokens`` tokens ended; ``stay.tokens`` already includes them."""
        ...

    def leave(self, stay: Stay, *, ended: bool) -> None:
        """Record that an episode left its engine: it ended normally (``ended``), or was aborted."""
        ...


POLICIES: Registry[type[SchedulingPolicy]] = Registry("scheduling policy", named_alone=True)


class Admission:
    """The queue of waiting episodes, and the engine of each running episode.

    Args:
        capacities: Number of tokens that the cache of each engine holds.
        policy: Chooses engines for episodes.
    """

    def __init__(self, capacities: Sequence[int], policy: SchedulingPolicy) -> None:
        self.capacities, self.policy = list(capacities), policy
        self._left_out: set[int] = set()
        self._queue: list[tuple[int, Stay]] = []
        self._asked = 0

    @property
    def waiting(self) -> int:
        """Number of episodes that wait for an engine."""
        return len(self._queue)

    @property
    def in_use(self) -> list[int]:
        """Indices of the engines that take new episodes."""
        return [engine for engine in range(len(self.capacities)) if engine not in self._left_out]

    def ask(self, prompt: int, most: int) -> Stay:
        """Add an episode to the queue.

        Args:
            prompt: Number of tokens of the prompt.
            most: Maximum number of tokens that may follow.

        Raises:
            ConfigurationError: The prompt fills or exceeds the cache of every engine.
        """
        if prompt >= max(self.capacities):
            raise ConfigurationError(
                f"A prompt of {prompt} tokens and a turn do not fit into the cache of any engine; the "
                f"largest cache has room for {max(self.capacities)} tokens. Shorten the prompt, or give "
                "the engines more memory."
            )
        stay = Stay(self._asked, prompt, most)
        self._asked += 1
        heapq.heappush(self._queue, (stay.number, stay))
        return stay

    def admit(self) -> list[Stay]:
        """Assign engines to as many waiting episodes as the policy allows, in order; return these episodes."""
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
        """Record that a running episode begins a turn; ``tokens`` tokens follow its prompt so far."""
        stay.tokens = tokens
        self.policy.turn_begins(stay)

    def turn_ends(self, stay: Stay, tokens: int) -> None:
        """Record that a turn ended; ``tokens`` tokens now follow the episode's prompt."""
        made, stay.tokens = tokens - stay.tokens, tokens
        self.policy.turn_ends(stay, made)

    def leave(self, stay: Stay, *, ended: bool) -> None:
        """Remove an episode from its engine or from the queue; a second call has no effect."""
        if stay.engine is not None:
            self.policy.leave(stay, ended=ended)
            stay.engine = None
        elif any(waiting is stay for _, waiting in self._queue):
            self._queue = [entry for entry in self._queue if entry[1] is not stay]
            heapq.heapify(self._queue)

    def move(self, stay: Stay) -> None:
        """Remove an episode from its engine, and queue it for another one, ahead of episodes that were added later."""
        if stay.engine is not None:
            stay.avoid.add(stay.engine)
        self.leave(stay, ended=False)
        heapq.heappush(self._queue, (stay.number, stay))

    def leave_out(self, engine: int) -> None:
        """Exclude an engine from new episodes; episodes that run on it may finish."""
        self._left_out.add(engine)

    def take_back(self, engine: int) -> None:
        """Include an excluded engine again."""
        self._left_out.discard(engine)


class _Counting:
    """Counts the episodes of each engine."""

    def __init__(self, capacities: Sequence[int]) -> None:
        self.episodes = [0] * len(capacities)

    def enter(self, stay: Stay) -> None:
        """Count the episode as running on its engine."""
        assert stay.engine is not None
        self.episodes[stay.engine] += 1

    def turn_begins(self, stay: Stay) -> None:
        """Do nothing: only the number of episodes matters."""

    def turn_ends(self, stay: Stay, tokens: int) -> None:
        """Do nothing: only the number of episodes matters."""

    def leave(self, stay: Stay, *, ended: bool) -> None:
        """Stop counting the episode on its engine."""
        assert stay.engine is not None
        self.episodes[stay.engine] -= 1


class Static(_Counting):
    """Scheduling policy that assigns episodes to the engines round-robin; no episode waits."""

    def place(self, stay: Stay, usable: Sequence[int]) -> int | None:
        """Return ``usable[stay.number % len(usable)]``."""
        return usable[stay.number % len(usable)]


class LeastRequests(_Counting):
    """Scheduling policy that chooses the engine with the fewest episodes; no episode waits."""

    def place(self, stay: Stay, usable: Sequence[int]) -> int | None:
        """Return the index of the usable engine with the fewest episodes."""
        return min(usable, key=self.episodes.__getitem__)


POLICIES.register("least_requests", LeastRequests)
POLICIES.register("static", Static)
