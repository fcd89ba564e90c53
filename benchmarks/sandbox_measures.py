"""Measuring a sandbox: speed and latency, a training step's load, what it holds, and whether anything grows.

Works with any provider. CPU time covers this process and its descendants, so it does not include work in a container or
on another machine. The command is ``sandbox_load.py``; ``sandbox.py`` compares with other ways of
running Python.
"""

from __future__ import annotations

import contextlib
import os
import random
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from rstar2_env.core.errors import Rstar2Error
from rstar2_env.sandbox.job import Job, Outcome, Sandbox
from rstar2_env.sandbox.limits import Limits

PROGRAMS = {
    "print": "print(1)",
    "numpy": "import numpy\nprint(numpy.arange(10).sum())",
    "sympy solve": "import sympy\nx = sympy.symbols('x')\nprint(sympy.solve(x**2 - 5*x + 6, x))",
}
"""The measured programs, from short to long."""
MIX = {
    "print(sum(range(100)))": 70.0,
    PROGRAMS["sympy solve"]: 25.9,
    "1 / 0": 4.0,
    "while True: pass": 0.1,
}
"""Programs of a training step, in percent of its calls (up to 45,000 calls per step in rStar2-Agent)."""
MIX_LIMITS = Limits(wall_s=2.0)
"""The limits of the calls of ``MIX``."""
_SETTLE_S = 30.0
"""Longest wait until the number of processes stays as it is."""

Progress = Callable[[float], None]


class BenchError(Rstar2Error, RuntimeError):
    """A call went wrong, so that its time says nothing."""


@dataclass(frozen=True)
class Figure:
    """One way of running one program.

    Attributes:
        how: The way.
        program: Name in ``PROGRAMS``.
        calls: How many were measured for throughput.
        per_second: Calls a second, with two callers more than cores.
        cpu_ms: CPU milliseconds a call, of this process and everything below it.
        p50_ms: Median latency of one call at a time, with a rest between.
        p99_ms: Its 99th percentile.
    """

    how: str
    program: str
    calls: int
    per_second: float
    cpu_ms: float
    p50_ms: float
    p99_ms: float


@dataclass(frozen=True)
class LoadFigure:
    """How calls fared that arrived at random.

    Attributes:
        rate: Calls a second that arrived, on average.
        calls: How many.
        mean_ms: Mean time from a call's arrival to its outcome.
        p50_ms: Its median.
        p99_ms: Its 99th percentile.
        backlog_s: Seconds that the last outcome came after the last arrival.
    """

    rate: float
    calls: int
    mean_ms: float
    p50_ms: float
    p99_ms: float
    backlog_s: float


@dataclass(frozen=True)
class SoakFigure:
    """Differences after many calls.

    Attributes:
        calls: How many.
        per_second: Calls a second.
        memory_grew_mb: MiB that this process and everything below it grew by.
        descriptors_grew: Open files that they have more.
        processes_grew: Processes that there are more.
        files_grew: Entries of the temporary folder that there are more.
        groups_grew: Control groups of their sandboxes that there are more.
        restarted: Whether a process that was there at the start is gone.
    """

    calls: int
    per_second: float
    memory_grew_mb: float
    descriptors_grew: int
    processes_grew: int
    files_grew: int
    groups_grew: int
    restarted: bool


def measure(how: str, program: str, run: Callable[[str], object], calls: int) -> Figure:
    """Measure throughput with two callers more than cores, then latency one at a time with a rest between.

    Args:
        how: Name of the way of running.
        program: Name in ``PROGRAMS``.
        run: Runs source and returns when it has ended.
        calls: How many to measure.
    """
    code = PROGRAMS[program]
    for _ in range(4):
        run(code)
    before, started = cpu_seconds(), time.perf_counter()
    with ThreadPoolExecutor(len(os.sched_getaffinity(0)) + 2) as pool:
        list(pool.map(run, [code] * calls))
    wall = time.perf_counter() - started
    time.sleep(0.2)
    spent = cpu_seconds() - before
    waits = []
    for _ in range(max(20, min(100, calls // 4))):
        time.sleep(0.02)
        began = time.perf_counter()
        run(code)
        waits.append((time.perf_counter() - began) * 1e3)
    quantiles = statistics.quantiles(waits, n=100)
    return Figure(how, program, calls, calls / wall, spent / calls * 1e3, quantiles[49], quantiles[98])


def measure_sandbox(sandbox: Sandbox, how: str, calls: int, progress: Progress = lambda done: None) -> list[Figure]:
    """Measure every program of ``PROGRAMS``.

    Args:
        sandbox: Any provider.
        how: Name of the measurement.
        calls: Calls of the shortest program; the longest gets a third.
        progress: Receives the finished share.

    Raises:
        BenchError: A call did not print what it should have.
    """

    def run(code: str) -> None:
        outcome = sandbox.run(Job(code))
        if not outcome.stdout:
            raise BenchError(_went_wrong(outcome))

    figures = []
    for at, program in enumerate(PROGRAMS, 1):
        figures.append(measure(how, program, run, calls if program != "sympy solve" else max(1, calls // 3)))
        progress(at / len(PROGRAMS))
    return figures


def load(sandbox: Sandbox, rate: float, seconds: float, progress: Progress = lambda done: None) -> LoadFigure:
    """Let calls of ``MIX`` arrive as a Poisson process.

    Args:
        sandbox: Any provider.
        rate: Calls a second.
        seconds: How long.
        progress: Receives the finished share.

    Raises:
        BenchError: The sandbox failed a call.
    """
    draw = random.Random(0)
    codes, weights = list(MIX), list(MIX.values())
    waits: list[float] = []
    guard = threading.Lock()

    def call(code: str, came: float) -> None:
        outcome = sandbox.run(Job(code, limits=MIX_LIMITS))
        if not outcome.status.counts:
            raise BenchError(_went_wrong(outcome))
        with guard:
            waits.append(time.perf_counter() - came)

    with ThreadPoolExecutor(256) as pool:
        pending: list[Future[None]] = []
        arrival = start = time.perf_counter()
        while arrival < start + seconds:
            arrival += draw.expovariate(rate)
            time.sleep(max(0.0, arrival - time.perf_counter()))
            pending.append(pool.submit(call, draw.choices(codes, weights)[0], arrival))
            progress(min(1.0, (arrival - start) / seconds))
        for future in pending:
            future.result()
    backlog = time.perf_counter() - arrival
    p50, p99 = statistics.median(waits) * 1e3, statistics.quantiles(waits, n=100)[98] * 1e3
    return LoadFigure(rate, len(waits), statistics.fmean(waits) * 1e3, p50, p99, backlog)


def soak(sandbox: Sandbox, calls: int, progress: Progress = lambda done: None) -> SoakFigure:
    """Run many short calls, and see by how much memory, descriptors, processes, files and control groups differ.

    Raises:
        BenchError: A call went wrong.
    """
    batch = [Job("print(1)")] * 500
    for _ in range(1 + min(3, calls // 2000)):  # queues and caches reach their size
        sandbox.run_many(batch)
    before, started = _holdings(), time.perf_counter()
    rounds = max(1, calls // len(batch))
    for at in range(rounds):
        for outcome in sandbox.run_many(batch):
            if outcome.stdout != "1\n":
                raise BenchError(_went_wrong(outcome))
        progress((at + 1) / rounds)
    took = time.perf_counter() - started
    after = _holdings()
    return SoakFigure(
        calls=rounds * len(batch),
        per_second=rounds * len(batch) / took,
        memory_grew_mb=(after.memory - before.memory) / (1 << 20),
        descriptors_grew=after.descriptors - before.descriptors,
        processes_grew=after.processes - before.processes,
        files_grew=after.files - before.files,
        groups_grew=after.groups - before.groups,
        restarted=not before.lasting <= after.lasting,
    )


def cpu_seconds() -> float:
    """CPU time of this process, everything below it, and all that those waited for."""
    ticks = 0
    for pid in _family():
        with contextlib.suppress(OSError):  # it has just ended, and its parent counts it
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class _Holdings:
    memory: int
    descriptors: int
    processes: int
    lasting: frozenset[int]
    files: int
    groups: int


def _holdings() -> _Holdings:
    """Return the number of held processes once the number of waiting children is stable."""
    looks: list[int] = []
    until = time.monotonic() + _SETTLE_S
    while len(set(looks[-6:])) != 1 or len(looks) < 6:
        time.sleep(0.25)
        looks.append(len(_family()))
        if time.monotonic() > until:
            break
    family = _family()
    # Waiting children come and go with the calls; what has children of its own stays.
    lasting = {pid for pid in family if _children(pid)} | {os.getpid()}
    page = os.sysconf("SC_PAGE_SIZE")
    memory = descriptors = 0
    for pid in lasting:
        memory += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * page
        descriptors += len(os.listdir(f"/proc/{pid}/fd"))
    return _Holdings(
        memory,
        descriptors,
        len(family),
        frozenset(lasting),
        files=len(os.listdir(tempfile.gettempdir())),
        groups=_groups(family),
    )


def _groups(family: Sequence[int]) -> int:
    """Control groups of the wardens among these processes: another sandbox on the machine has its own."""
    names = {f"rstar2-sandbox-{pid}" for pid in family}
    return sum(bool(names.intersection(Path(folder).parts)) for folder, _, _ in os.walk("/sys/fs/cgroup"))


def _family() -> Sequence[int]:
    """This process and all below it."""
    found, at = [os.getpid()], 0
    while at < len(found):
        found += _children(found[at])
        at += 1
    return found


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):  # it has just ended
        for task in os.listdir(f"/proc/{pid}/task"):
            found += map(int, Path(f"/proc/{pid}/task/{task}/children").read_text().split())
    return found


def _went_wrong(outcome: Outcome) -> str:
    said = outcome.error_message or outcome.stderr[-500:] or f"printed {outcome.stdout[:100]!r}"
    return f"A call that should have succeeded ended as {outcome.status.value!r}: {said}"
