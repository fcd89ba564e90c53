"""Compare the local sandbox with other ways of running a model's Python, on the same machine in the same run.

    python benchmarks/sandbox.py                # some minutes
    python benchmarks/sandbox.py --quick        # less than a minute

Figures from a busy machine mean little in themselves: the ratios and the CPU milliseconds a call carry over. CPU counts
everything: caller, warden, zygote and children. The sandbox alone, a training step's load and the soak are in
``benchmarks/sandbox_load.py``.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from sandbox_measures import PROGRAMS, Figure, measure, measure_sandbox

from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox import Job, LocalSandbox

BARE = """
import json, os, sys, numpy, sympy
x = sympy.symbols("x")
sympy.solve(x**2 - 5*x + 6, x)
import gc
gc.freeze()
for line in sys.stdin:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(write, 1)
        exec(json.loads(line), {})
        sys.stdout.flush()
        os._exit(0)
    os.close(write)
    output = b""
    while data := os.read(read, 65536):
        output += data
    os.close(read)
    os.waitpid(child, 0)
    sys.stderr.write(json.dumps(output.decode()) + "\\n")
    sys.stderr.flush()
"""
"""A warm interpreter that forks for each line of input: no isolation, no limits, nothing seen but the output."""


def fresh(*prefix: str) -> Callable[[str], None]:
    """A fresh interpreter per call, behind a command."""

    def run(code: str) -> None:
        command = [*prefix, sys.executable, "-c", code]
        subprocess.run(command, capture_output=True, timeout=30, check=True)

    return run


def limited_file(code: str) -> None:
    """The design of code-judge's workers: code after a preamble in a file, which sets its limits by itself."""
    preamble = (
        "import resource, signal\nsignal.alarm(10)\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 30, resource.getrlimit(resource.RLIMIT_AS)[1]))\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "source.py")
        with open(path, "w") as file:
            file.write(preamble + code + "\n")
        subprocess.run([sys.executable, path], cwd=folder, capture_output=True, start_new_session=True, check=True)


@contextmanager
def bare_forks() -> Iterator[Callable[[str], None]]:
    """Forks of warm interpreters, one interpreter a core, with no isolation: what forking alone costs."""
    cores = len(os.sched_getaffinity(0))
    pipe = subprocess.PIPE
    warm = [
        subprocess.Popen([sys.executable, "-c", BARE], stdin=pipe, stderr=pipe, text=True, bufsize=1)
        for _ in range(cores)
    ]
    free: queue.SimpleQueue[subprocess.Popen[str]] = queue.SimpleQueue()
    for process in warm:
        free.put(process)

    def run(code: str) -> None:
        process = free.get()
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(json.dumps(code) + "\n")
        if not json.loads(process.stderr.readline()):
            raise RuntimeError("a call printed nothing")
        free.put(process)

    try:
        yield run
    finally:
        for process in warm:
            process.communicate()


@contextmanager
def plain(run: Callable[[str], None]) -> Iterator[Callable[[str], None]]:
    """A way of running that needs no start."""
    yield run


def others() -> Iterator[tuple[str, int, Callable[[str], None]]]:
    """The ways of running that the sandbox is compared with, and how many times fewer calls are enough."""
    with bare_forks() as run:
        yield "bare fork of a warm interpreter, no isolation", 1, run
    yield "fresh interpreter (GEM's design)", 20, fresh()
    yield "fresh, file and own rlimits (code-judge's)", 20, limited_file
    if shutil.which("bwrap"):
        wall = ("--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev")
        yield "bwrap, fresh interpreter", 20, fresh("bwrap", *wall)
    else:
        print("bwrap is not installed: left out", file=sys.stderr)
    if shutil.which("nsjail"):
        yield "nsjail, fresh interpreter", 20, fresh("nsjail", "-Mo", "--really_quiet", "--chroot", "/", "--")
    else:
        print("nsjail is not installed: left out", file=sys.stderr)


def compare(calls: int) -> list[Figure]:
    """Every program, in the sandbox and otherwise."""
    with LocalSandbox() as sandbox:
        figures = measure_sandbox(sandbox, "local, every layer", calls)
        for program in PROGRAMS:
            figures.append(measure("local, a cell in a running session", program, in_session(sandbox), calls))
    for how, fewer, run in others():
        for program in PROGRAMS:
            slower = 1 if program == "print" or fewer == 1 else 4
            figures.append(measure(how, program, run, max(8, calls // fewer // slower)))
    return figures


def parents_of(sandbox: LocalSandbox) -> list[int]:
    """Process ids of the parents: the zygote's children."""
    connection = sandbox._connection
    assert connection is not None
    zygote = int(Path(f"/proc/{connection.zygote_pid}/stat").read_text().rpartition(")")[2].split()[1])
    return [int(pid) for pid in Path(f"/proc/{zygote}/task/{zygote}/children").read_text().split()]


def shared_mb(pids: list[int]) -> float:
    """Memory of processes in MiB; a page that several processes share counts in parts."""
    kib = 0
    for pid in pids:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        kib += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return kib / 1024


def in_session(sandbox: LocalSandbox) -> Callable[[str], object]:
    """Run programs as cells of one session."""

    def run(code: str) -> None:
        outcome = sandbox.run(Job(code, session="benchmark"))
        if outcome.status is not ToolStatus.OK:
            raise RuntimeError(f"a cell went wrong: {outcome}")

    return run


def size() -> dict[str, float]:
    """Memory of the light parent and of all together, and what one more waiting child costs, in MiB."""

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
    with LocalSandbox() as sandbox:
        for names in ("'numpy'", "'sympy'", "'numpy', 'sympy'"):  # to name them is enough for a parent
            sandbox.run(Job(names))
        together = shared_mb(parents_of(sandbox))
    return {
        "light_parent_mb": resident,
        "all_parents_mb": together,
        "waiting_child_mb": statistics.median(waiting),
    }


def show(figures: list[Figure]) -> None:
    """Print a table with the ratio to a fresh interpreter."""
    base = {figure.program: figure for figure in figures if figure.how.startswith("fresh interpreter")}
    print(f"{'how':46} {'program':12} {'calls/s':>8} {'times':>6} {'CPU ms':>7} {'p50 ms':>7} {'p99 ms':>7}")
    for figure in figures:
        times = figure.per_second / base[figure.program].per_second
        waits_for_none = figure.how.startswith(("bwrap", "nsjail"))  # of its children, whose time is not seen then
        cpu = "-" if waits_for_none else f"{figure.cpu_ms:.2f}"
        print(
            f"{figure.how:46} {figure.program:12} {figure.per_second:8.1f} {times:6.1f} {cpu:>7} "
            f"{figure.p50_ms:7.2f} {figure.p99_ms:7.2f}"
        )


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer calls")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of tables")
    arguments = parser.parse_args()
    found: dict[str, object] = {"cores": len(os.sched_getaffinity(0)), "load_average": os.getloadavg()[0]}
    figures = compare(300 if arguments.quick else 1000)
    found["memory"] = size()
    if arguments.json:
        found["figures"] = [asdict(figure) for figure in figures]
    else:
        show(figures)
    print(json.dumps(found, indent=None if arguments.json else 2))


if __name__ == "__main__":
    main()
