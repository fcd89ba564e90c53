"""How fast a sandbox is here, under what load it keeps up, and whether it leaks.

    python benchmarks/sandbox_load.py                           # speed, with the CPU time of a call
    python benchmarks/sandbox_load.py --load 38 --load 150      # a training step's mix, at so many calls a second
    python benchmarks/sandbox_load.py --soak 200000             # so many calls: does anything grow?
    python benchmarks/sandbox_load.py --provider docker --set memory_mb=4096

CPU time covers this process and all below it. Exits with 1 when a call went wrong, or a soak left something behind.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from sandbox_measures import BenchError, Figure, LoadFigure, SoakFigure, load, measure_sandbox, soak

from rstar2_env.core.errors import Rstar2Error
from rstar2_env.core.options.declare import parse_options
from rstar2_env.sandbox import make_sandbox


def read_arguments() -> argparse.Namespace:
    """Return the parsed arguments."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--provider", default="local", help="which sandbox")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="an option of the provider")
    parser.add_argument("--calls", type=int, default=1000, help="calls of the shortest program, from 8")
    parser.add_argument("--load", action="append", type=float, default=[], help="instead: calls that arrive a second")
    parser.add_argument("--seconds", type=float, default=30.0, help="how long each load lasts, from 1")
    parser.add_argument("--soak", type=int, default=0, help="instead: run so many calls, and see whether anything grew")
    parser.add_argument("--json", action="store_true", help="as one JSON object")
    given = parser.parse_args()
    if given.calls < 8 or given.seconds < 1 or given.soak < 0:
        parser.error("--calls must be a whole number from 8, --seconds from 1, --soak from 0")
    return given


def main() -> int:
    """Measure and print; the exit code."""
    given = read_arguments()
    found: dict[str, Any] = {
        "provider": given.provider,
        "cores": len(os.sched_getaffinity(0)),
        "load_average": round(os.getloadavg()[0], 2),
    }
    speed: list[Figure] = []
    loads: list[LoadFigure] = []
    soaked: SoakFigure | None = None
    try:
        with make_sandbox(given.provider, **parse_options(given.set)) as sandbox:
            for rate in given.load:
                loads.append(load(sandbox, rate, given.seconds, progress(f"{rate:g} calls a second")))
            if given.soak:
                soaked = soak(sandbox, given.soak, progress(f"{given.soak} calls"))
            if not given.load and not given.soak:
                speed = measure_sandbox(sandbox, given.provider, given.calls, progress("speed"))
    except BenchError as error:
        print(error, file=sys.stderr)
        return 1
    except Rstar2Error as error:
        print(error, file=sys.stderr)
        return 2
    if given.json:
        found |= {"figures": [asdict(figure) for figure in speed], "loads": [asdict(figure) for figure in loads]}
        print(json.dumps(found | {"soak": asdict(soaked) if soaked else None}))
    else:
        show(found, speed, loads, soaked)
    return 1 if soaked is not None and leaked(soaked) else 0


def progress(what: str) -> Callable[[float], None]:
    """Shows the finished share in a terminal."""

    def tell(done: float) -> None:
        if sys.stderr.isatty():
            print(f"\r{what}: {done:4.0%}", end="\n" if done >= 1 else "", file=sys.stderr, flush=True)

    return tell


def leaked(soaked: SoakFigure) -> bool:
    """Whether more is there than chance explains; memory may grow a little as allocators settle."""
    grew = (soaked.descriptors_grew, soaked.processes_grew, soaked.groups_grew)
    return soaked.restarted or soaked.memory_grew_mb > 32 or max(grew) > 0


def show(found: dict[str, Any], speed: list[Figure], loads: list[LoadFigure], soaked: SoakFigure | None) -> None:
    """Print what was measured as tables."""
    print(
        f"Sandbox {found['provider']} on {found['cores']} cores, load average {found['load_average']}. "
        "On a busy machine only CPU and ratios carry over."
    )
    if speed:
        print(f"{'program':<14}{'calls':>8}{'calls/s':>9}{'CPU ms':>9}{'p50 ms':>9}{'p99 ms':>9}")
    for f in speed:
        times = f"{f.cpu_ms:>9.2f}{f.p50_ms:>9.2f}{f.p99_ms:>9.2f}"
        print(f"{f.program:<14}{f.calls:>8}{f.per_second:>9.0f}{times}")
    if loads:
        print(f"{'arrivals/s':<14}{'calls':>8}{'mean ms':>9}{'p50 ms':>9}{'p99 ms':>9}{'backlog s':>11}")
    for g in loads:
        print(f"{g.rate:<14g}{g.calls:>8}{g.mean_ms:>9.1f}{g.p50_ms:>9.1f}{g.p99_ms:>9.1f}{g.backlog_s:>11.1f}")
    if soaked:
        state = "something grew" if leaked(soaked) else "nothing grew"
        print(
            f"{soaked.calls} calls, {soaked.per_second:.0f}/s, {state}: memory {soaked.memory_grew_mb:+.1f} MiB, "
            f"descriptors {soaked.descriptors_grew:+d}, processes {soaked.processes_grew:+d}, "
            f"control groups {soaked.groups_grew:+d}, temporary files {soaked.files_grew:+d}"
        )


if __name__ == "__main__":
    sys.exit(main())
