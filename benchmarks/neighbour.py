"""How much a hostile program slows down the calls that run at the same time in the same sandbox.

    python benchmarks/neighbour.py                                     # every program, with all layers
    python benchmarks/neighbour.py --mode no-groups --mode no-mount    # where layers are missing
    python benchmarks/neighbour.py --json found.jsonl                  # the same file again: the rest of the programs
    python benchmarks/neighbour.py --only fork_bomb --calls 500

An honest call is measured alone, and then while the program runs again and again ("next to"), or while a session rests
in which the program was a cell ("rest"). The ratios of the medians and of the 99th percentiles come from one run, so
they mean something on a busy machine too; the times do not. Run it as root and as an ordinary user: the modes differ.
Exits with 1 if an honest call ended otherwise than alone.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.files.json_lines import add_line, begin_lines, read_lines
from rstar2_env.sandbox import Job, Limits, LocalSandbox
from rstar2_env.testing import HOSTILE_LIMITS, hostile_programs

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

from figures import write_results

MODES: dict[str, tuple[str, ...]] = {
    "all-layers": (),
    "no-groups": ("cgroups",),
    "no-mount": ("mount", "cgroups"),
    "no-namespaces": ("pid", "mount", "net", "ipc", "uts", "cgroup", "user", "cgroups"),
}
"""Modes by name: the layers that each omits, for ``without`` of the local sandbox."""
WAYS = ("beside", "rest")
HONEST = "print(sum(range(100_000)))"
"""The honest call: some milliseconds of CPU time."""
_HONEST_LIMITS = Limits(wall_s=60.0)
_RESTS_AFTER_S = 0.5
"""Seconds after a cell within which its session is halted."""
_SESSION = "attacked"
WANTED = (2.0, 4.0)
"""Wanted bounds of the two ratios with all layers on a quiet machine: of the medians, and of the 99th percentiles."""
ATTACKS = Path(__file__).resolve().parents[2] / "shared" / "attacks"


@dataclass(frozen=True)
class Interference:
    """The effect of one program on the calls next to it.

    Attributes:
        mode: Name in ``MODES``.
        user: ``"root"`` or ``"user"``.
        way: Name in ``WAYS``.
        program: Name of the hostile program.
        calls: Number of honest calls, alone and again next to the program.
        alone_p50_ms: Median time of an honest call alone.
        alone_p99_ms: Its 99th percentile.
        p50_ratio: Median next to the program, as a multiple of the median alone.
        p99_ratio: The same for the 99th percentile.
        attacks: How often the program ran, by the status of its outcome.
        other_ends: Number of honest calls that ended otherwise than alone.
        load_average: Load average of the machine at the end.
    """

    mode: str
    user: str
    way: str
    program: str
    calls: int
    alone_p50_ms: float
    alone_p99_ms: float
    p50_ratio: float
    p99_ratio: float
    attacks: dict[str, int]
    other_ends: int
    load_average: float


def programs(folder: Path) -> dict[str, str]:
    """Every hostile program by name: those of a folder of files, if it exists, and those of ``rstar2_env.testing``."""
    found = {path.stem: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.py"))}
    return found | {program.name: program.code for program in hostile_programs()}


def measure(sandbox: LocalSandbox, mode: str, way: str, program: str, code: str, calls: int) -> Interference:
    """Measure honest calls alone and next to one program.

    Args:
        sandbox: A sandbox with at least two workers.
        mode: Name of its mode, for the result.
        way: ``"beside"`` runs the program again and again; ``"rest"`` runs it once as a cell, whose session then rests.
        program: Name of the program.
        code: Its source.
        calls: Number of honest calls, at least 2.
    """
    alone, expected = _honest(sandbox, calls)
    attacks: Counter[str] = Counter()
    with (_beside if way == "beside" else _resting)(sandbox, code, attacks):
        waits, ends = _honest(sandbox, calls)
    (usual, _), *_ = expected.most_common(1)
    first, second = (statistics.quantiles(times, n=100, method="inclusive") for times in (alone, waits))
    return Interference(
        mode=mode,
        user="root" if os.geteuid() == 0 else "user",
        way=way,
        program=program,
        calls=calls,
        alone_p50_ms=first[49] * 1e3,
        alone_p99_ms=first[98] * 1e3,
        p50_ratio=second[49] / first[49],
        p99_ratio=second[98] / first[98],
        attacks=dict(sorted(attacks.items())),
        other_ends=calls - ends[usual],
        load_average=os.getloadavg()[0],
    )


def _honest(sandbox: LocalSandbox, calls: int) -> tuple[list[float], Counter[tuple[str, str]]]:
    """Times of honest calls in seconds, and how they ended."""
    waits: list[float] = []
    ends: Counter[tuple[str, str]] = Counter()
    for _ in range(calls):
        began = time.perf_counter()
        outcome = sandbox.run(Job(HONEST, limits=_HONEST_LIMITS))
        waits.append(time.perf_counter() - began)
        ends[outcome.status.value, outcome.stdout] += 1
    return waits, ends


@contextmanager
def _beside(sandbox: LocalSandbox, code: str, attacks: Counter[str]) -> Iterator[None]:
    """Run a program again and again in a thread."""
    enough = threading.Event()

    def attack() -> None:
        while not enough.is_set():
            attacks[sandbox.run(Job(code, limits=HOSTILE_LIMITS)).status.value] += 1

    thread = threading.Thread(target=attack)
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join()


@contextmanager
def _resting(sandbox: LocalSandbox, code: str, attacks: Counter[str]) -> Iterator[None]:
    """Run a program as a cell of a session, and let the session rest."""
    attacks[sandbox.run(Job(code, limits=replace(HOSTILE_LIMITS, wall_s=1.0), session=_SESSION)).status.value] += 1
    time.sleep(_RESTS_AFTER_S)
    try:
        yield
    finally:
        sandbox.end_session(_SESSION)


def missing_layers(sandbox: LocalSandbox) -> list[str]:
    """Names of the mechanisms that are not active."""
    return [layer.name for layer in sandbox.capabilities() if not layer.required and not layer.active]


def _is_within(one: dict[str, Any]) -> bool:
    """Whether both ratios of a program are within ``WANTED``."""
    return bool(one["p50_ratio"] <= WANTED[0] and one["p99_ratio"] <= WANTED[1])


def show(found: list[dict[str, Any]]) -> None:
    """Print the programs with the largest ratios first."""
    print(f"{'mode':14} {'way':7} {'program':44} {'p50':>6} {'p99':>6} {'alone ms':>9} {'other ends':>10}")
    for one in sorted(found, key=lambda one: -one["p50_ratio"]):
        print(
            f"{one['mode']:14} {one['way']:7} {one['program'][:44]:44} {one['p50_ratio']:6.1f} {one['p99_ratio']:6.1f} "
            f"{one['alone_p50_ms']:9.2f} {one['other_ends']:>10}"
        )
    within = sum(map(_is_within, found))
    bounds = f"{WANTED[0]:g} times the median and {WANTED[1]:g} times the 99th percentile"
    print(f"{within} of {len(found)} are within {bounds}.")


def tables_of(found: list[dict[str, Any]], worst: int = 6) -> dict[str, list[list[str]]]:
    """Return the tables for the documents: a summary of each mode and way, and the programs with the largest medians.

    Args:
        found: Measured programs.
        worst: Number of programs in the second table.
    """
    head = [
        "mode",
        "the program",
        "programs",
        "median",
        "99th percentile",
        f"within {WANTED[0]:g} × and {WANTED[1]:g} ×",
    ]
    summary = [[*head, "changed results"]]
    for mode, way in dict.fromkeys((one["mode"], one["way"]) for one in found):
        lines = [one for one in found if (one["mode"], one["way"]) == (mode, way)]
        within = sum(map(_is_within, lines))
        ranges = [_range([one[ratio] for one in lines]) for ratio in ("p50_ratio", "p99_ratio")]
        ends = sum(one["other_ends"] for one in lines)
        said = "runs again and again" if way == "beside" else "was a cell of a resting session"
        summary.append([mode, said, str(len(lines)), *ranges, f"{within} of {len(lines)}", str(ends)])
    rows = [["program", "mode", "median", "99th percentile", "median alone"]]
    for one in sorted(found, key=lambda one: -one["p50_ratio"])[:worst]:
        ratios = [f"{one[ratio]:.1f} ×" for ratio in ("p50_ratio", "p99_ratio")]
        rows.append([f"`{one['program']}`", one["mode"], *ratios, f"{one['alone_p50_ms']:.1f} ms"])
    return {"summary": summary, "worst": rows}


def _range(ratios: list[float]) -> str:
    """Return the median of ratios and the largest one."""
    return f"{statistics.median(ratios):.1f} ×, at most {max(ratios):.1f} ×"


def read_arguments(given: list[str] | None) -> argparse.Namespace:
    """Return the parsed arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", action="append", choices=list(MODES), help="which layers [default: all-layers]")
    parser.add_argument("--way", action="append", choices=WAYS, help="how the program runs [default: both]")
    parser.add_argument("--only", action="append", default=[], metavar="PROGRAM", help="only programs of these names")
    parser.add_argument("--attacks", type=Path, default=ATTACKS, help="a folder of further programs")
    parser.add_argument("--calls", type=int, default=200, help="honest calls, alone and again, from 2")
    parser.add_argument("--json", type=Path, help="a file of JSON lines; what it has already is not measured again")
    parser.add_argument("--write", metavar="NAME", help="also write docs/data/NAME.json, for the documents")
    arguments = parser.parse_args(given)
    if arguments.calls < 2:
        parser.error("--calls must be a whole number from 2")
    arguments.programs = programs(arguments.attacks)
    if unknown := set(arguments.only) - set(arguments.programs):
        parser.error(f"--only: there are no programs {', '.join(sorted(unknown))}")
    return arguments


def main(given: list[str] | None = None) -> int:
    """Measure what is missing, and print the table; return the exit code."""
    arguments = read_arguments(given)
    chosen = {name: code for name, code in arguments.programs.items() if not arguments.only or name in arguments.only}
    asked = [
        (mode, way, name)
        for mode in arguments.mode or ["all-layers"]
        for way in arguments.way or WAYS
        for name in chosen
    ]
    try:
        there = (
            [] if arguments.json is None or not arguments.json.exists() else list(read_lines(arguments.json, "ours"))
        )
    except ConfigurationError as error:
        print(error, file=sys.stderr)
        return 2
    user = "root" if os.geteuid() == 0 else "user"
    known = {(one["mode"], one["way"], one["program"]): one for *_, one in there if one["user"] == user}
    known = {key: one for key, one in known.items() if one["calls"] == arguments.calls}
    file = begin_lines(arguments.json, (text + "\n" for _, text, _ in there)) if arguments.json is not None else None
    for mode in dict.fromkeys(mode for mode, *_ in asked):
        left = [key for key in asked if key[0] == mode and key not in known]
        if not left:
            continue
        with LocalSandbox(workers=2, waiting=2, preload=(), without=MODES[mode]) as sandbox:
            print(f"{mode}: without {', '.join(missing_layers(sandbox)) or 'nothing'}", file=sys.stderr)
            for at, (_, way, name) in enumerate(left, 1):
                print(f"{mode} {at}/{len(left)}: {name} ({way})", file=sys.stderr, flush=True)
                one = asdict(measure(sandbox, mode, way, name, chosen[name], arguments.calls))
                known[mode, way, name] = one
                if file is not None:
                    add_line(file, one)
    if file is not None:
        file.close()
    shown = [known[key] for key in asked]
    show(shown)
    if arguments.write:
        loads = [one["load_average"] for one in shown]
        command = f"python benchmarks/neighbour.py --calls {arguments.calls}"
        command += "".join(f" --mode {mode}" for mode in arguments.mode or ())
        load = f"load average {min(loads):.1f} to {max(loads):.1f}, this benchmark included"
        write_results(arguments.write, command, tables=tables_of(shown), load=load)
    return 1 if any(one["other_ends"] for one in shown) else 0


if __name__ == "__main__":
    sys.exit(main())
