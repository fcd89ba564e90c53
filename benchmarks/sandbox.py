"""How fast the local sandbox is, beside a fresh interpreter per call on the same machine in the same run.

    python benchmarks/sandbox.py                # a few minutes
    python benchmarks/sandbox.py --quick        # half a minute
    python benchmarks/sandbox.py --load 38 150  # Poisson arrivals of a training step's mix, calls a second
    python benchmarks/sandbox.py --soak 200000  # many calls, and whether anything grew

Figures from a busy machine mean little in themselves: the ratios and the CPU milliseconds a call carry over. CPU counts
everything: caller, warden, warm parent and children.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass

from rstar2_env.sandbox import Job, Limits, LocalSandbox

PROGRAMS = {
    "print": "print(1)",
    "numpy": "import numpy\nprint(numpy.arange(10).sum())",
    "sympy solve": "import sympy\nx = sympy.symbols('x')\nprint(sympy.solve(x**2 - 5*x + 6, x))",
}
MIX = {
    "print(sum(range(100)))": 70.0,
    PROGRAMS["sympy solve"]: 25.9,
    "1 / 0": 4.0,
    "while True: pass": 0.1,
}
"""What a training step calls, in percent."""


@dataclass(frozen=True)
class Figure:
    """One way of running one program."""

    how: str
    program: str
    calls: int
    per_second: float
    cpu_ms: float
    p50_ms: float
    p99_ms: float


def cpu_seconds(*pids: int) -> float:
    """CPU time of processes and of the children that they waited for."""
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat") as file:
            total += sum(map(int, file.read().rpartition(")")[2].split()[11:15]))
    return total / os.sysconf("SC_CLK_TCK")


def measure(how: str, program: str, run: Callable[[str], None], calls: int, cpu: Callable[[], float]) -> Figure:
    """Throughput with as many callers as cores and two more, then latency one at a time with a rest between."""
    code = PROGRAMS[program]
    for _ in range(4):
        run(code)
    before, started = cpu(), time.perf_counter()
    with ThreadPoolExecutor(len(os.sched_getaffinity(0)) + 2) as pool:
        list(pool.map(run, [code] * calls))
    wall = time.perf_counter() - started
    time.sleep(0.2)
    spent = cpu() - before
    waits = []
    for _ in range(min(100, calls)):
        time.sleep(0.02)
        began = time.perf_counter()
        run(code)
        waits.append((time.perf_counter() - began) * 1e3)
    quantiles = statistics.quantiles(waits, n=100)
    return Figure(how, program, calls, calls / wall, spent / calls * 1e3, quantiles[49], quantiles[98])


def own_cpu() -> float:
    """CPU time of this process and of the children that it waited for."""
    usages = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def fresh(*prefix: str) -> Callable[[str], None]:
    """A fresh interpreter per call, behind a command."""

    def run(code: str) -> None:
        command = [*prefix, sys.executable, "-c", code]
        subprocess.run(command, capture_output=True, timeout=30, check=True)

    return run


def limited_file(code: str) -> None:
    """The design of a common judge: code between a preamble and an epilogue in a file, limits set by itself."""
    preamble = (
        "import resource, signal\nsignal.alarm(10)\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 30, resource.getrlimit(resource.RLIMIT_AS)[1]))\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "source.py")
        with open(path, "w") as file:
            file.write(preamble + code + "\n")
        subprocess.run([sys.executable, path], cwd=folder, capture_output=True, start_new_session=True, check=True)


def others() -> Iterator[tuple[str, Callable[[str], None]]]:
    """The ways of running that the sandbox is compared with."""
    yield "fresh interpreter", fresh()
    yield "fresh, file and rlimits (a judge's design)", limited_file
    if shutil.which("bwrap"):
        yield (
            "bwrap, fresh interpreter",
            fresh(
                "bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"
            ),
        )


def compare(calls: int) -> list[Figure]:
    """Every program, in the sandbox and otherwise."""
    figures = []
    with LocalSandbox() as sandbox:
        connection = sandbox._connection
        assert connection is not None

        def cpu() -> float:
            return own_cpu() + cpu_seconds(connection.warden_pid, connection.zygote_pid)

        for program in PROGRAMS:
            count = calls if program != "sympy solve" else calls // 3
            how = "local, every layer"
            figures.append(measure(how, program, lambda code: check(sandbox.run(Job(code)).stdout), count, cpu))
    for how, run in others():
        for program in PROGRAMS:
            figures.append(measure(how, program, run, max(4, calls // (20 if program == "print" else 80)), own_cpu))
    return figures


def check(stdout: str) -> None:
    """A call that went wrong must not count as a fast one."""
    if not stdout:
        raise RuntimeError("a call printed nothing")


def load(rate: float, seconds: float) -> dict[str, float]:
    """Poisson arrivals of the mix at ``rate`` a second: the wait of each call from its arrival to its outcome."""
    draw = random.Random(0)
    codes, weights = list(MIX), list(MIX.values())
    limits = Limits(wall_s=2.0)
    waits: list[float] = []
    guard = threading.Lock()
    with LocalSandbox(limits=limits) as sandbox, ThreadPoolExecutor(256) as pool:
        pending: list[Future[None]] = []
        arrival = start = time.perf_counter()

        def call(code: str, came: float) -> None:
            sandbox.run(Job(code, limits=limits))
            with guard:
                waits.append(time.perf_counter() - came)

        while arrival < start + seconds:
            arrival += draw.expovariate(rate)
            time.sleep(max(0.0, arrival - time.perf_counter()))
            pending.append(pool.submit(call, draw.choices(codes, weights)[0], arrival))
        for future in pending:
            future.result()
    return {
        "rate": rate,
        "calls": len(waits),
        "mean_ms": statistics.fmean(waits) * 1e3,
        "p50_ms": statistics.median(waits) * 1e3,
        "p99_ms": statistics.quantiles(waits, n=100)[98] * 1e3,
    }


def size() -> dict[str, float]:
    """Memory of the warm parent, and what one more waiting child costs, in MiB."""

    def private(pid: int) -> float:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            return sum(int(line.split()[1]) for line in file if line.startswith("Private")) / 1024

    with LocalSandbox(workers=1, waiting=4) as sandbox:
        sandbox.run(Job("1"))
        time.sleep(1)
        connection = sandbox._connection
        assert connection is not None
        with open(f"/proc/{connection.zygote_pid}/task/{connection.zygote_pid}/children") as file:
            children = [private(int(pid)) for pid in file.read().split()]
        with open(f"/proc/{connection.zygote_pid}/statm") as file:
            resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)
    waiting = [value for value in children if value > 0.1]
    return {"warm_parent_mb": resident, "waiting_child_mb": statistics.median(waiting)}


def soak(calls: int) -> dict[str, float]:
    """Run many calls, and say by how much memory, descriptors and processes differ at the end."""
    with LocalSandbox() as sandbox:
        connection = sandbox._connection
        assert connection is not None
        pids = (connection.warden_pid, connection.zygote_pid)

        def look() -> tuple[float, int]:
            time.sleep(1)
            memory = 0.0
            for pid in pids:
                with open(f"/proc/{pid}/statm") as file:
                    memory += int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)
            return memory, sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in pids)

        sandbox.run_many([Job("print(1)")] * 500)
        before, started = look(), time.perf_counter()
        for _ in range(calls // 500):
            if any(outcome.stdout != "1\n" for outcome in sandbox.run_many([Job("print(1)")] * 500)):
                raise RuntimeError("a call went wrong")
        after = look()
        return {
            "calls": calls,
            "per_second": calls / (time.perf_counter() - started),
            "memory_grew_mb": after[0] - before[0],
            "descriptors_grew": after[1] - before[1],
            "restarted": float(pids != (sandbox._connection.warden_pid, sandbox._connection.zygote_pid)),
        }


def show(figures: list[Figure]) -> None:
    """Print a table with the ratio to a fresh interpreter."""
    base = {figure.program: figure for figure in figures if figure.how == "fresh interpreter"}
    print(f"{'how':44} {'program':12} {'calls/s':>8} {'times':>6} {'CPU ms':>7} {'p50 ms':>7} {'p99 ms':>7}")
    for figure in figures:
        times = figure.per_second / base[figure.program].per_second
        print(
            f"{figure.how:44} {figure.program:12} {figure.per_second:8.1f} {times:6.1f} {figure.cpu_ms:7.2f} "
            f"{figure.p50_ms:7.2f} {figure.p99_ms:7.2f}"
        )


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer calls")
    parser.add_argument("--load", type=float, nargs="*", metavar="RATE", help="Poisson arrivals at these rates")
    parser.add_argument("--seconds", type=float, default=30.0, help="length of each load")
    parser.add_argument("--soak", type=int, metavar="CALLS", help="many calls, and whether anything grew")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of tables")
    arguments = parser.parse_args()
    found: dict[str, object] = {"cores": len(os.sched_getaffinity(0)), "load_average": os.getloadavg()[0]}
    if arguments.soak:
        found["soak"] = soak(arguments.soak)
    if arguments.load:
        found["load"] = [load(rate, arguments.seconds) for rate in arguments.load]
    if not arguments.soak and not arguments.load:
        figures = compare(300 if arguments.quick else 2000)
        found["figures"] = [asdict(figure) for figure in figures]
        found["memory"] = size()
        if not arguments.json:
            show(figures)
            del found["figures"]
    print(json.dumps(found, indent=None if arguments.json else 2))


if __name__ == "__main__":
    main()
