"""The scheduling policies at the paper's scale, in simulated time: 64 engines, 16,384 episodes, ten turns.

    python benchmarks/scheduler_sim.py [--engines 64] [--episodes 16384]

The policies and the queue are those that run for real (``scheduling.admission``); only engines, tools and the
clock are simulated. What is assumed:

Episodes. A response (the policy's tokens and the tools') is log-normal with sigma 0.7, half of its variance shared by
the 32 episodes of a problem, cut at the stage's maximum; the mean follows rStar2-Agent (arXiv 2508.20722, section 5.1):
1K to 4K of 8K in stage 1, 6K of 12K in stage 2, 8K of 12K in stage 3. Calls are Poisson with mean 2.7 (45K calls of
16,384 episodes), at most 9; the tokens are shared among the turns at random; a result has 90 tokens. Prompts have 700.
A tool takes 0.3 s on average, as the paper measured: log-normal around 0.2 s, and one call in a hundred 4 s.

Engines. A model of 14.8 billion parameters in bfloat16 with a cache of 160 KiB a token (Qwen3-14B) on one MI300X, with
80 GB of cache in addition to the weights and the trainer: 488K tokens. A decoding step takes 2 ms, plus the weights at
3.2 TB/s or the rows at 520 TFLOP/s, whichever is longer, plus the cache of all rows at 3.2 TB/s; prompts are computed
at 520 TFLOP/s while decoding stands still. The cache works as vLLM's does: what an episode computed stays while its
tool runs, the least recently used goes first when room is needed; when only running rows are left, the newest is
pre-empted, and computed again later.

Policies. ``lock-step`` is what the paper's section 3.2 starts from: as many episodes to each engine, and every turn
waits for all of its engine's episodes and tools. ``known`` is told every length, and takes the longest first. ``bound``
is what no schedule can beat: the area of all work at full caches, and the longest episode alone. ``kv_aware`` is in its
second step: it has seen one step of such lengths; ``cold`` is its first.

Not simulated: prompts shared by a group, speculative decoding, the network, machines of unlike speed.
"""

from __future__ import annotations

import argparse
import heapq
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from rstar2_env.rollout.scheduling.admission import POLICIES, Admission, LeastRequests, SchedulingPolicy, Stay
from rstar2_env.rollout.scheduling.kv_aware import KvAware

OVERHEAD_S, WEIGHTS_S, TOKEN_S, CACHE_S = 2e-3, 29.6e9 / 3.2e12, 2 * 14.8e9 / 520e12, 163_840 / 3.2e12
"""Seconds of a step as such, of reading the weights, of computing one token, of reading one token's cache."""
CAPACITY, PROMPT, RESULT, GROUP = 488_000, 700, 90, 32
STAGES = {"1K of 8K": (1000, 8192, 10), "2K of 8K": (2000, 8192, 10), "4K of 8K": (4000, 8192, 10)} | {
    "6K of 12K": (6000, 12288, 10),
    "8K of 12K": (8000, 12288, 15),
}


@dataclass(eq=False, slots=True)
class Episode:
    """One episode as it will go: tokens of each turn, seconds of the tool after each but the last."""

    turns: list[int]
    waits: list[float]
    most: int
    stay: Stay | None = None
    turn: int = 0
    tokens: int = PROMPT
    cached: int = 0
    end_step: float = 0.0

    @property
    def total(self) -> int:
        """Tokens at its end, the prompt included."""
        return PROMPT + sum(self.turns) + RESULT * len(self.waits)


def make_episodes(count: int, mean: int, most: int, turns: int, seed: int) -> list[Episode]:
    """Draw the episodes of one step; the median is set so that the mean of the cut lengths is as asked."""
    rng = np.random.default_rng(seed)
    shared = np.repeat(rng.standard_normal(-(-count // GROUP)), GROUP)[:count]
    shape = np.exp(0.7 * (shared + rng.standard_normal(count)) / np.sqrt(2))
    low, high = 0.0, 10.0 * most
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if np.minimum(middle * shape, most).mean() < mean else (low, middle)
    lengths = np.minimum(low * shape, most).astype(int)
    made = []
    for length in lengths:
        calls = min(int(rng.poisson(2.7)), turns - 1, int(length) // (3 * RESULT))
        parts = rng.dirichlet(np.full(calls + 1, 2.0)) * (length - calls * RESULT)
        waits = np.where(rng.random(calls) < 0.01, 4.0, rng.lognormal(np.log(0.2), 0.7, calls))
        made.append(Episode([max(1, int(part)) for part in parts], [float(wait) for wait in waits], most))
    return made


@dataclass(eq=False, slots=True)
class Engine:
    """One engine: rows that are decoded together, requests that wait, and the cache of episodes at their tools."""

    capacity: int
    rows: list[tuple[float, int, Episode]] = field(default_factory=list)
    newest: list[Episode] = field(default_factory=list)
    waiting: deque[Episode] = field(default_factory=deque)
    idle: OrderedDict[Episode, int] = field(default_factory=OrderedDict)
    running_tokens: float = 0.0
    idle_tokens: int = 0
    steps: float = 0.0
    clock: float = 0.0
    stall: float = 0.0
    busy: float = 0.0
    version: int = 0
    preempted: int = 0
    recomputed: int = 0
    added: int = 0

    def fixed(self) -> float:
        """Seconds of a step besides reading the cache."""
        return OVERHEAD_S + max(WEIGHTS_S, len(self.rows) * TOKEN_S)

    def advance(self, now: float) -> None:
        """Let the time pass: prompts first, then steps."""
        passed = now - self.clock
        self.clock = now
        if not self.rows:
            return
        self.busy += passed
        stalled = min(self.stall, passed)
        self.stall -= stalled
        # Steps x take fixed * x + CACHE_S * (tokens * x + rows * x^2 / 2) seconds.
        square, linear = CACHE_S * len(self.rows) / 2, self.fixed() + CACHE_S * self.running_tokens
        done = 2 * (passed - stalled) / (linear + np.sqrt(linear * linear + 4 * square * (passed - stalled)))
        self.steps += done
        self.running_tokens += done * len(self.rows)

    def next_time(self) -> float | None:
        """When a row ends or the cache is full."""
        if not self.rows:
            return None
        room = self.capacity - self.idle_tokens - self.running_tokens
        ahead = max(0.0, min(self.rows[0][0] - self.steps, room / len(self.rows)))
        square, linear = CACHE_S * len(self.rows) / 2, self.fixed() + CACHE_S * self.running_tokens
        return self.clock + self.stall + linear * ahead + square * ahead * ahead

    def take(self) -> None:
        """Let waiting requests in, first come, first served, while the cache has room for them."""
        while self.waiting:
            episode = self.waiting[0]
            cached = self.idle.get(episode, 0)
            room = self.capacity - self.running_tokens - (0.01 * self.capacity if self.rows else 0)
            if episode.tokens > room:
                return
            self.waiting.popleft()
            self.idle_tokens -= self.idle.pop(episode, 0)
            while self.idle_tokens + episode.tokens > room:
                self.idle_tokens -= self.idle.popitem(last=False)[1]
            self.recomputed += episode.cached - cached
            self.stall += (episode.tokens - cached) * TOKEN_S
            episode.end_step = self.steps + episode.turns[episode.turn]
            self.running_tokens += episode.tokens
            self.added += 1
            heapq.heappush(self.rows, (episode.end_step, self.added, episode))
            self.newest.append(episode)

    def finished(self) -> list[Episode]:
        """Rows whose turn is over; when the cache is full instead, make room."""
        over = []
        while self.rows and self.rows[0][0] <= self.steps + 1e-6:
            over.append(heapq.heappop(self.rows)[2])
        for episode in over:
            self.newest.remove(episode)
            episode.tokens += episode.turns[episode.turn]
            self.running_tokens -= episode.tokens
        if not over and self.rows and self.running_tokens + self.idle_tokens > self.capacity - 1:
            if self.idle:
                self.idle_tokens -= self.idle.popitem(last=False)[1]
            elif len(self.rows) > 1:
                self._preempt()
        if not self.rows:
            self.running_tokens = 0.0
        return over

    def _preempt(self) -> None:
        episode = self.newest.pop()
        self.rows = [row for row in self.rows if row[2] is not episode]
        heapq.heapify(self.rows)
        left = episode.end_step - self.steps
        done = int(episode.turns[episode.turn] - left)
        self.running_tokens -= episode.tokens + episode.turns[episode.turn] - left
        # What it has written in this turn stays; it is computed again with the rest.
        episode.turns[episode.turn] -= done
        episode.tokens += done
        episode.cached = episode.tokens
        self.preempted += 1
        self.waiting.appendleft(episode)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a policy: seconds, counts over all engines, and the share of their time without a row."""

    makespan: float
    preempted: int
    recomputed: int
    idle: float
    finished: list[float]


class Simulation:
    """Plays episodes under a policy; in lock-step, an engine's turn waits for all of its episodes."""

    def __init__(self, capacities: Sequence[int], policy: SchedulingPolicy, *, lock_step: bool = False) -> None:
        self.engines = [Engine(capacity) for capacity in capacities]
        self.admission = Admission(capacities, policy)
        self._lock_step = lock_step
        self._events: list[tuple[float, int, int, Episode | None, int]] = []
        self._number = 0
        self._at_tools: list[list[Episode]] = [[] for _ in capacities]
        self._turns_out = [0] * len(capacities)
        self._playing: dict[Stay, Episode] = {}
        if isinstance(policy, Known):
            policy.tokens_of = self._tokens

    def run(self, episodes: Sequence[Episode]) -> Outcome:
        """Play them all, asked for in this order."""
        for episode in episodes:
            episode.stay = self.admission.ask(PROMPT, episode.most)
            self._playing[episode.stay] = episode
        self._admit(0.0)
        finished = []
        while self._events:
            now, _, number, episode, version = heapq.heappop(self._events)
            engine = self.engines[number]
            if episode is None and version != engine.version:
                continue
            engine.advance(now)
            if episode is not None:
                self._request(number, episode)
            for over in engine.finished():
                self._turn_over(number, over, now)
                if over.stay is not None and over.stay.engine is None:
                    finished.append(now)
            engine.take()
            self._plan(number)
        makespan = finished[-1]
        return Outcome(
            makespan,
            sum(engine.preempted for engine in self.engines),
            sum(engine.recomputed for engine in self.engines),
            1 - sum(engine.busy for engine in self.engines) / (makespan * len(self.engines)),
            finished,
        )

    def _tokens(self, stay: Stay) -> float:
        """Tokens that follow the prompt of an episode at this moment."""
        episode, engine = self._playing[stay], self.engines[stay.engine or 0]
        if stay.engine is None or episode in engine.idle or episode.end_step <= engine.steps:
            return episode.tokens - PROMPT
        return episode.tokens - PROMPT + episode.turns[episode.turn] - (episode.end_step - engine.steps)

    def _turn_over(self, number: int, episode: Episode, now: float) -> None:
        stay, engine = episode.stay, self.engines[number]
        assert stay is not None
        self.admission.turn_ends(stay, episode.tokens - PROMPT)
        self._turns_out[number] -= 1
        if episode.turn == len(episode.waits):
            self.admission.leave(stay, ended=True)
        else:
            engine.idle[episode] = episode.cached = episode.tokens
            engine.idle_tokens += episode.tokens
            if self._lock_step:
                self._at_tools[number].append(episode)
            else:
                self._push(now + episode.waits[episode.turn], number, episode)
        if self._lock_step and not self._turns_out[number] and self._at_tools[number]:
            together = now + max(other.waits[other.turn] for other in self._at_tools[number])
            for other in self._at_tools[number]:
                self._push(together, number, other)
            self._at_tools[number] = []
        self._admit(now)

    def _request(self, number: int, episode: Episode) -> None:
        """An episode asks its engine for its next turn."""
        if episode.cached:
            episode.turn += 1
            episode.tokens += RESULT
        assert episode.stay is not None
        self.admission.turn_begins(episode.stay, episode.tokens - PROMPT)
        self._turns_out[number] += 1
        self.engines[number].waiting.append(episode)

    def _admit(self, now: float) -> None:
        for stay in self.admission.admit():
            assert stay.engine is not None
            self._push(now, stay.engine, self._playing[stay])

    def _plan(self, number: int) -> None:
        engine = self.engines[number]
        engine.version += 1
        if (when := engine.next_time()) is not None:
            self._push(when, number, None, engine.version)

    def _push(self, when: float, number: int, episode: Episode | None, version: int = 0) -> None:
        self._number += 1
        heapq.heappush(self._events, (when, self._number, number, episode, version))


class Known(LeastRequests):
    """Is told every length: lets an episode in where the sum over its engine's episodes never passes the capacity."""

    def __init__(self, capacities: Sequence[int], total: dict[int, int]) -> None:
        super().__init__(capacities)
        self._capacities, self._total = capacities, total
        self._here: list[dict[Stay, None]] = [{} for _ in capacities]
        self._sums = [0] * len(capacities)
        self.tokens_of: Callable[[Stay], float] = lambda stay: stay.tokens

    def place(self, stay: Stay, usable: Sequence[int]) -> int | None:
        """See ``SchedulingPolicy``."""
        engine = min(usable, key=self._sums.__getitem__)
        size = np.array([PROMPT + self.tokens_of(other) for other in (*self._here[engine], stay)], dtype=float)
        left = np.array([self._total[other.number] for other in (*self._here[engine], stay)]) - size
        order = np.argsort(-left)
        # Just before the one with the (i+1)-th longest way ends, it and the i longer ones have grown by its way.
        peak = (np.cumsum(size[order]) + np.arange(1, len(size) + 1) * left[order]).max()
        return engine if peak <= 0.98 * self._capacities[engine] or not self._here[engine] else None

    def enter(self, stay: Stay) -> None:
        """See ``SchedulingPolicy``."""
        self._here[stay.engine or 0][stay] = None
        self._sums[stay.engine or 0] += self._total[stay.number]

    def leave(self, stay: Stay, *, ended: bool) -> None:
        """See ``SchedulingPolicy``."""
        del self._here[stay.engine or 0][stay]
        self._sums[stay.engine or 0] -= self._total[stay.number]


def bound(episodes: Sequence[Episode], engines: int, capacity: int) -> float:
    """Seconds that no schedule can beat: see the top of this file."""
    area = longest = 0.0
    for episode in episodes:
        written, at, cache = sum(episode.turns), PROMPT, 0.0
        for turn in episode.turns:
            cache += turn * at + turn * turn / 2
            at += turn + RESULT
        prompts = (episode.total - written) * TOKEN_S
        # A step holds at most a full cache, so a row's share of it is at least its tokens over the capacity.
        shared = max((OVERHEAD_S + WEIGHTS_S) * cache / capacity, OVERHEAD_S * cache / capacity + written * TOKEN_S)
        area += cache * CACHE_S + prompts + shared
        alone = written * (OVERHEAD_S + WEIGHTS_S) + cache * CACHE_S + prompts + sum(episode.waits)
        longest = max(longest, alone)
    return max(area / engines, longest)


def compare(engines: int, count: int, stage: tuple[int, int, int], seed: int = 0) -> dict[str, Outcome | float]:
    """Every policy on the same episodes."""
    capacities = [CAPACITY] * engines

    def fresh(number: int = 1) -> list[Episode]:
        return make_episodes(count, *stage, seed + number)

    found: dict[str, Outcome | float] = {
        "lock-step": Simulation(capacities, POLICIES.get("static")(capacities), lock_step=True).run(fresh())
    }
    for name in ("static", "least_requests"):
        found[name] = Simulation(capacities, POLICIES.get(name)(capacities)).run(fresh())
    aware = KvAware(capacities)
    Simulation(capacities, aware).run(fresh(0))
    found["cold"] = Simulation(capacities, KvAware(capacities)).run(fresh())
    found["kv_aware"] = Simulation(capacities, aware).run(fresh())
    longest_first = sorted(fresh(), key=lambda episode: -episode.total)
    total = {number: episode.total for number, episode in enumerate(longest_first)}
    found["known"] = Simulation(capacities, Known(capacities, total)).run(longest_first)
    found["bound"] = bound(fresh(), engines, CAPACITY)
    return found


def main() -> None:
    """Simulate every stage and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", type=int, default=64)
    parser.add_argument("--episodes", type=int, default=16_384)
    parser.add_argument("--stages", nargs="*", choices=STAGES, default=list(STAGES))
    arguments = parser.parse_args()
    for name in arguments.stages:
        found = compare(arguments.engines, arguments.episodes, STAGES[name])
        print(f"\n{name}: {arguments.episodes} episodes on {arguments.engines} engines")
        print(f"{'policy':15} {'makespan':>9} {'pre-emptions':>13} {'recomputed':>11} {'idle':>6}")
        for policy, outcome in found.items():
            if isinstance(outcome, float):
                print(f"{policy:15} {outcome:7.0f} s")
                continue
            counts = f"{outcome.preempted:13,} {outcome.recomputed:11,} {outcome.idle:6.1%}"
            print(f"{policy:15} {outcome.makespan:7.0f} s {counts}")


if __name__ == "__main__":
    main()
