"""What a server on loopback adds to the local sandbox: latency at low load, throughput, CPU time; a Ray node likewise.

    python benchmarks/sandbox_remote.py              # about a minute
    python benchmarks/sandbox_remote.py --rounds 20  # steadier
    python benchmarks/sandbox_remote.py --ray        # beside them, a Ray cluster of this machine alone

All are measured in turns, in the same minute, with as many workers: the differences and ratios carry over to other
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
from contextlib import ExitStack, contextmanager
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
    parser.add_argument("--ray", action="store_true", help="measure the provider ray too")
    arguments = parser.parse_args()
    found: dict[str, object] = {"cores": WORKERS, "load_average": round(os.getloadavg()[0], 2)}
    with server() as (url, pid), ExitStack() as stack:
        sandboxes = {
            "local": make_sandbox("local", workers=WORKERS),
            "remote": make_sandbox("remote", url=url),
            **({"ray": make_sandbox("ray", address="local", workers=WORKERS)} if arguments.ray else {}),
        }
        for sandbox in sandboxes.values():
            stack.enter_context(sandbox)
        for program, code in PROGRAMS.items():
            found[program] = measured(sandboxes, pid, code, arguments.rounds, arguments.calls)
    print(json.dumps(found, indent=2))


def measured(sandboxes: dict[str, Sandbox], pid: int, code: str, rounds: int, calls: int) -> dict[str, object]:
    """Each sandbox's latency and throughput for a program, and what they add to those of the first.

    Args:
        sandboxes: The local one, and those to compare with it.
        pid: Process of the server of ``remote``.
        code: The program.
        rounds: Turns of each.
        calls: Calls of one turn's throughput; a quarter for a program that imports something.
    """
    calls = calls if "import" not in code else calls // 4
    waits: dict[str, list[float]] = {name: [] for name in sandboxes}
    rates: dict[str, list[float]] = {name: [] for name in sandboxes}
    server_cpu = client_cpu = 0.0
    for sandbox in sandboxes.values():
        throughput(sandbox, code, 50)
    for turn in range(rounds):
        for name, sandbox in list(sandboxes.items())[:: 1 if turn % 2 else -1]:
            waits[name] += latency(sandbox, code, 40)
            before = cpu_s(pid), time.process_time()
            rates[name].append(throughput(sandbox, code, calls))
            if name == "remote":
                server_cpu += cpu_s(pid) - before[0]
                client_cpu += time.process_time() - before[1]
    p50 = {name: statistics.median(values) for name, values in waits.items()}
    others = [name for name in sandboxes if name != "local"]
    return {
        "p50_ms": {name: round(value, 2) for name, value in p50.items()},
        "p50_ms_added": {name: round(p50[name] - p50["local"], 2) for name in others},
        "p90_ms": {name: round(statistics.quantiles(values, n=10)[8], 2) for name, values in waits.items()},
        "per_second": {name: round(statistics.median(values), 1) for name, values in rates.items()},
        "throughput_ratio": {
            name: round(statistics.median(map(truediv, rates[name], rates["local"])), 3) for name in others
        },
        "server_cpu_ms": round(server_cpu / (calls * rounds) * 1e3, 2),
        "client_cpu_ms": round(client_cpu / (calls * rounds) * 1e3, 2),
    }


if __name__ == "__main__":
    main()
