"""What the docker sandbox adds to the latency of the local one: one call of each in turn, in the same minute.

    python benchmarks/sandbox_docker.py [--calls 200] [--image rstar2-sandbox:latest] [--base-url unix:///run/docker.sock]

Needs an engine and the image (`rstar2 sandbox image`). One call at a time: throughput is
`python benchmarks/sandbox_load.py --provider docker`.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time

from rstar2_env.sandbox import Job, Sandbox, make_sandbox

PROGRAMS = {
    "print(1)": "print(1)",
    "sympy solve": "import sympy\nx = sympy.Symbol('x')\nprint(sympy.solve(x**2 - 5 * x + 6))",
}
_WARM = 20
_PAUSE_S = 0.01
"""Between two calls, so that the next child is ready: latency at low load."""


def measure(sandboxes: dict[str, Sandbox], job: Job, calls: int) -> dict[str, list[float]]:
    """Milliseconds of each call, by sandbox."""
    taken: dict[str, list[float]] = {name: [] for name in sandboxes}
    for number in range(_WARM + calls):
        for name, sandbox in sandboxes.items():
            start = time.perf_counter()
            sandbox.run(job)
            if number >= _WARM:
                taken[name].append(1000 * (time.perf_counter() - start))
            time.sleep(_PAUSE_S)
    return taken


def main() -> None:
    """Measure and print a row for each program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--image", default="rstar2-sandbox:latest")
    parser.add_argument("--base-url")
    given = parser.parse_args()
    with (
        make_sandbox("local") as local,
        make_sandbox("docker", image=given.image, base_url=given.base_url) as docker,
    ):
        print(f"load {os.getloadavg()[0]:.1f}, {given.calls} calls of each in turn")
        for name, code in PROGRAMS.items():
            taken = measure({"local": local, "docker": docker}, Job(code), given.calls)
            tenths = {which: statistics.quantiles(times, n=10) for which, times in taken.items()}
            for at in (1, 5, 9):  # on a busy machine the first tenth is the least disturbed
                local_ms, docker_ms = tenths["local"][at - 1], tenths["docker"][at - 1]
                added = f"{docker_ms - local_ms:+.2f} ms, {docker_ms / local_ms:.2f} times"
                print(f"{name} p{10 * at}: local {local_ms:.2f} ms, docker {docker_ms:.2f} ms: {added}")


if __name__ == "__main__":
    main()
