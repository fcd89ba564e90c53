"""What a server on loopback adds to the local sandbox: latency at low load, throughput, CPU time.

    python benchmarks/sandbox_remote.py              # about a minute
    python benchmarks/sandbox_remote.py --rounds 20  # steadier

Both are measured in turns, in the same minute, with as many workers: the differences and ratios carry over to other
machines, the figures themselves do not. Client, server and programs share the cores here, as they would not on a
cluster.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from operator import truediv

from rstar2_env.sandbox import Job, Sandbox, make_sandbox

WORKERS = len(os.sched_getaffinity(0))
PROGRAMS = {
    "print": "print(1)",
    "sympy solve": "import sympy\nx = sympy.symbols('x')\nprint(sympy.solve(x**2 - 5*x + 6, x))",
}


@contextmanager
def server() -> Iterator[tuple[str, int]]:
    """A server on a free port: its address and process id."""
    command = [sys.executable, "-c", "from rstar2_env.cli import main; main()", "sandbox", "serve", "--port", "0"]
    with subprocess.Popen([*command, "--workers", str(WORKERS)], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            yield process.stderr.readline().split()[-1], process.pid
        finally:
            process.terminate()
            process.stderr.read()


def latency(sandbox: Sandbox, code: str, calls: int) -> list[float]:
    """Milliseconds of calls one at a time, with a rest between."""
    waits = []
    for _ in range(calls):
        time.sleep(0.01)
        began = time.perf_counter()
        outcome = sandbox.run(Job(code))
        waits.append((time.perf_counter() - began) * 1e3)
        check(outcome.stdout)
    return waits


def throughput(sandbox: Sandbox, code: str, calls: int) -> float:
    """Calls a second when all are there at once."""
    began = time.perf_counter()
    for outcome in sandbox.run_many([Job(code)] * calls):
        check(outcome.stdout)
    return calls / (time.perf_counter() - began)


def check(stdout: str) -> None:
    """A call that went wrong must not count as a fast one."""
    if not stdout:
        raise RuntimeError("a call printed nothing")


def cpu_s(pid: int) -> float:
    """CPU seconds of one process, without its children."""
    with open(f"/proc/{pid}/stat") as file:
        return sum(map(int, file.read().rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=6, help="turns of each")
    parser.add_argument("--calls", type=int, default=400, help="calls of one turn's throughput")
    arguments = parser.parse_args()
    found: dict[str, object] = {"cores": WORKERS, "load_average": round(os.getloadavg()[0], 2)}
    with (
        server() as (url, pid),
        make_sandbox("local", workers=WORKERS) as local,
        make_sandbox("remote", url=url) as remote,
    ):
        for program, code in PROGRAMS.items():
            waits: dict[str, list[float]] = {"local": [], "remote": []}
            rates: dict[str, list[float]] = {"local": [], "remote": []}
            server_cpu = client_cpu = 0.0
            calls = arguments.calls if program == "print" else arguments.calls // 4
            for sandbox in (local, remote):
                throughput(sandbox, code, 50)
            for turn in range(arguments.rounds):
                both = (("local", local), ("remote", remote))
                for name, sandbox in both if turn % 2 else both[::-1]:
                    waits[name] += latency(sandbox, code, 40)
                    before = cpu_s(pid), time.process_time()
                    rates[name].append(throughput(sandbox, code, calls))
                    if name == "remote":
                        server_cpu += cpu_s(pid) - before[0]
                        client_cpu += time.process_time() - before[1]
            p50 = {name: statistics.median(values) for name, values in waits.items()}
            rate = {name: statistics.median(values) for name, values in rates.items()}
            found[program] = {
                "p50_ms": {name: round(value, 2) for name, value in p50.items()},
                "p50_ms_added": round(p50["remote"] - p50["local"], 2),
                "p90_ms": {name: round(statistics.quantiles(values, n=10)[8], 2) for name, values in waits.items()},
                "per_second": {name: round(value, 1) for name, value in rate.items()},
                "throughput_ratio": round(statistics.median(map(truediv, rates["remote"], rates["local"])), 3),
                "server_cpu_ms": round(server_cpu / (calls * arguments.rounds) * 1e3, 2),
                "client_cpu_ms": round(client_cpu / (calls * arguments.rounds) * 1e3, 2),
            }
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
