"""Run the tests on mutants of the trainers' formulas: ``python tools/mutate.py [--hours 2] [--only TEXT] [--report]``.

A mutant is a copy of a module with one change to a formula (``mutations.py``). If no test fails on it, it survived: a
test is missing. Without options, the mutants are those of every module in the folders of advantages, losses (with
aggregations and corrections) and selectors; the tests are those of the same folders below ``tests/trainers``, and the
test of all declared options.

The tests are imported once, and each runs once, which records the lines that it executes. Each mutant then runs in a
fork, in memory: first the fastest test that executes the changed line, until one fails. A change outside functions
needs a fork that imports the module again. Work continues where the last run ended: ``build/mutants`` keeps the results
of each mutant until its module changes, or, if it survived, until a test changes.

``tools/equivalent_mutants.toml`` lists the mutants that no input can distinguish from the original, with the reason.
The exit status is 1 if a mutant survived that is not listed there, or if a listed mutant does not exist or was killed.

mutmut and cosmic-ray do not fit: mutmut derives the name of a module from its path, which differs here (see
the links in ``rstar2_env``), and cosmic-ray starts pytest, and imports torch, for each mutant.

Not covered: tests of several processes and tests marked ``slow``, ``train``, ``deadlines``, ``served`` or ``proof``.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mutant_tests import ROOT, Tests, digest
from mutations import Mutant, mutants_of

SLOTS = ("advantages", "losses", "selectors")
DECLARED = ROOT / "tests" / "trainers" / "test_part_options.py"
"""The test of what every part declares, which runs on each change outside functions."""
EQUIVALENT = ROOT / "tools" / "equivalent_mutants.toml"
FOLDER = ROOT / "build" / "mutants"
KILLED, SURVIVED, TIMED_OUT = "killed", "survived", "timed out"
_BETWEEN = 15.0
"""Seconds between two lines of progress."""


@dataclass(frozen=True)
class Result:
    """The result of one mutant.

    Attributes:
        id: Name of the mutant.
        status: ``killed``, ``survived`` or ``timed out``; the latter counts as killed.
        by: The test that failed; empty if none did.
        tests: Number of tests that execute the changed line.
        seconds: Time that the mutant took.
        source: Digest of the module.
        suite: Digest of all tests.
    """

    id: str
    status: str
    by: str
    tests: int
    seconds: float
    source: str
    suite: str

    def holds(self, source: str, suite: str) -> bool:
        """Return whether the result is still valid for a module and the tests."""
        return self.source == source and (self.status != SURVIVED or self.suite == suite)


def modules(folders: Sequence[Path]) -> list[Path]:
    """Return the modules of the folders; a file is returned as it is."""
    return [one for folder in folders for one in ([folder] if folder.is_file() else sorted(folder.glob("*.py")))]


def read_results(path: Path) -> dict[str, Result]:
    """Read the last result of each mutant; a line that was cut off by a kill is skipped."""
    found = {}
    for line in path.read_text("utf-8").splitlines() if path.exists() else ():
        try:
            result = Result(**json.loads(line))
        except (json.JSONDecodeError, TypeError):
            continue
        found[result.id] = result
    return found


def read_equivalent(path: Path) -> dict[str, str]:
    """Read the ids of mutants that no input can distinguish from the original, and the reasons.

    Raises:
        SystemExit: An entry has no reason.
    """
    entries = tomllib.loads(path.read_text("utf-8")).get("mutants", []) if path.exists() else []
    for entry in entries:
        if not entry.get("reason") or not entry.get("ids"):
            raise SystemExit(f"{path}: each entry needs `ids` and a `reason`; got {entry}.")
    return {one: str(entry["reason"]) for entry in entries for one in entry["ids"]}


def run(
    todo: Sequence[Mutant], tests: Tests, sources: dict[str, str], write: Callable[[Result], None], ends: float
) -> int:
    """Run the tests on mutants until a time, and return how many were run.

    Args:
        todo: The mutants.
        tests: The tests.
        sources: Text of each module.
        write: Receives each result.
        ends: Time of the monotonic clock at which no further mutant starts.
    """
    began = said = time.monotonic()
    survived = 0
    for number, mutant in enumerate(todo):
        if time.monotonic() > ends:
            return number
        started = time.monotonic()
        reach = tests.reaching(mutant)
        failed = tests.first_failure(mutant, sources[mutant.file], reach) if reach else ""
        status = TIMED_OUT if failed is None else KILLED if failed else SURVIVED
        survived += status == SURVIVED
        seconds = round(time.monotonic() - started, 3)
        source = digest(sources[mutant.file])
        write(Result(mutant.id, status, failed or "", len(reach), seconds, source, tests.suite))
        if status == SURVIVED:
            print(f"survived: {mutant.file}:{mutant.line} {mutant.old} -> {mutant.new}", flush=True)
        if time.monotonic() - said > _BETWEEN:
            said = time.monotonic()
            each = (said - began) / (number + 1)
            left = (len(todo) - number - 1) * each / 60
            print(
                f"{number + 1} of {len(todo)} mutants, {survived} survived, {each:.2f} s each, {left:.0f} min left",
                flush=True,
            )
    return len(todo)


def table(
    mutants: Sequence[Mutant], results: dict[str, Result], listed: dict[str, str]
) -> tuple[list[str], dict[str, Any]]:
    """Return the lines of the table by module with a line of totals, and the totals by name."""
    lines = [
        "| module | mutants | killed | timed out | survived | equivalent | score |",
        "|---|---|---|---|---|---|---|",
    ]
    files = list(dict.fromkeys(mutant.file for mutant in mutants))
    totals: dict[str, Any] = {}
    for name in [*files, ""]:
        own = [mutant for mutant in mutants if name in ("", mutant.file) and mutant.id in results]
        by = {status: sum(results[one.id].status == status for one in own) for status in (KILLED, TIMED_OUT, SURVIVED)}
        equivalent = sum(results[one.id].status == SURVIVED and one.id in listed for one in own)
        score = (by[KILLED] + by[TIMED_OUT]) / len(own) if own else 1.0
        if own:
            cells = [name or "all", len(own), *by.values(), equivalent, f"{score:.3f}"]
            lines.append("| " + " | ".join(map(str, cells)) + " |")
        totals = {"mutants": len(own), **by, "equivalent": equivalent, "score": round(score, 4)}
    return lines, totals


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="mutate.py", description=(__doc__ or "").split("\n\n")[0].split(":")[0] + ".")
    parser.add_argument("--only", action="append", metavar="TEXT", help="run only mutants with TEXT in their names")
    parser.add_argument("--sample", type=int, metavar="N", help="run N random mutants")
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample (default 0)")
    parser.add_argument(
        "--hours", type=float, default=2.0, help="stop after this time (default 2); run again to continue"
    )
    parser.add_argument(
        "--seconds", type=float, default=5.0, help="CPU time of a mutant beyond 3 times that of its tests (default 5)"
    )
    parser.add_argument("--fresh", action="store_true", help="ignore earlier results")
    parser.add_argument("--list", action="store_true", help="print the names of the mutants and run nothing")
    parser.add_argument("--report", action="store_true", help="print the table of earlier results and run nothing")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write totals and survivors to FILE")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="folder of the results (default build/mutants)")
    parser.add_argument(
        "--equivalent", type=Path, default=EQUIVALENT, metavar="FILE", help="the listed equivalent mutants"
    )
    parser.add_argument("--source", type=Path, nargs="+", metavar="PATH", help="folders or modules to mutate")
    parser.add_argument("--tests", type=Path, nargs="+", metavar="PATH", help="folders or files of tests")
    found = parser.parse_args(arguments)
    found.source = found.source or [ROOT / "trainers" / slot for slot in SLOTS]
    found.tests = found.tests or [*(ROOT / "tests" / "trainers" / slot for slot in SLOTS), DECLARED]
    for path in (*found.source, *found.tests):
        if not path.exists():
            parser.error(f"{path} does not exist; give a folder or a file.")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for, and return the exit status."""
    options = parse(arguments)
    files = [path.resolve() for path in modules(options.source)]
    names = {str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path): path for path in files}
    sources = {name: path.read_text("utf-8") for name, path in names.items()}
    every = [mutant for name, source in sources.items() for mutant in mutants_of(source, name)]
    chosen = [one for one in every if not options.only or any(text in one.id for text in options.only)]
    if options.sample is not None and options.sample < len(chosen):
        picked = set(random.Random(options.seed).sample(range(len(chosen)), options.sample))
        chosen = [one for number, one in enumerate(chosen) if number in picked]
    if options.list:
        print("\n".join(f"{one.id}  (line {one.line})" for one in chosen))
        return 0
    options.folder.mkdir(parents=True, exist_ok=True)
    store = options.folder / "results.jsonl"
    results = {} if options.fresh else read_results(store)
    if not options.report:
        tests = Tests(
            [path.resolve() for path in options.tests],
            names,
            sources,
            options.folder,
            declared=DECLARED.name,
            spare=options.seconds,
        )
        todo = [
            one
            for one in chosen
            if one.id not in results or not results[one.id].holds(digest(sources[one.file]), tests.suite)
        ]
        todo.sort(key=lambda one: one.id in results)  # first the mutants that were never run
        print(f"{len(chosen)} mutants, {len(todo)} of them to run; results: {store}", flush=True)
        with store.open("a", encoding="utf-8") as file, tests:

            def write(result: Result) -> None:
                results[result.id] = result
                file.write(json.dumps(vars(result)) + "\n")
                file.flush()

            if todo:
                tests.start()
                run(todo, tests, sources, write, time.monotonic() + options.hours * 3600)
    return _report(every, chosen, results, sources, options)


def _report(
    every: list[Mutant],
    chosen: list[Mutant],
    results: dict[str, Result],
    sources: dict[str, str],
    options: argparse.Namespace,
) -> int:
    listed = read_equivalent(options.equivalent)
    current = {
        one.id: one for one in chosen if one.id in results and results[one.id].source == digest(sources[one.file])
    }
    lines, totals = table(chosen, {name: results[name] for name in current}, listed)
    survivors = [one for name, one in current.items() if results[name].status == SURVIVED and name not in listed]
    known = {one.id for one in every}
    modules_read = {one.file for one in every}
    stale = [name for name in listed if name.partition("::")[0] in modules_read and name not in known]
    stale += [name for name in listed if name in current and results[name].status != SURVIVED]
    print("\n".join(lines))
    for one in survivors:
        print(f"survived: {one.file}:{one.line}: {one.old} -> {one.new}  ({results[one.id].tests} tests)")
    for name in stale:
        print(f"{options.equivalent}: this mutant does not exist or was killed; remove it: {name}")
    waiting = len(chosen) - len(current)
    if waiting:
        print(f"{waiting} mutants were not run yet; run the same command again to continue.")
    if options.json:
        found = {**totals, "waiting": waiting, "survivors": [one.id for one in survivors], "stale": stale}
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return int(bool(survivors or stale))


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)
