"""Runs the tests in passes, each on as many workers as suits it, and sums them up: ``python passes.py [for pytest]``.

Tests that wait for deadlines wait next to one another, and come first, since CI installs other things meanwhile. Tests
of trainers compute, with one thread in each worker: more threads of torch than cores wait for one another. The rest
takes more workers than cores. Each pass collects only what it runs, and once for all of its workers (``workers.py``).
Every pass runs, whatever the result of the others; the last line counts all tests, and the exit code is 0 if nothing
failed.

Each pass leaves its JUnit report in ``build/tests``, and ``durations.json`` there has the seconds of each file of
tests. The next run begins with the longest files. ``--record`` writes the seconds of long files to
``tests/durations.json``, which the first run in a clone uses.

A few tests that failed are run once more at the end, with nothing beside them. What passes then failed because of what
else ran, and is listed as unsteady under its first failure: a defect of the test, or of what it tests, that is to be
mended, but no reason to lose a whole run. More than a few are a failure at once.

Not covered: proofs, which take long and have a runner of their own (``proof.py``).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from xml.etree import ElementTree

from failed_ids import FAILED, PASSED
from groups import DURATIONS, RECORDED
from places import ROOT, SUPPORT
from prepared import preparing

_SOME_FAILED, _NO_TESTS = 1, 5
"""pytest's exit codes where tests failed, and where nothing was selected."""

_MOST_AGAIN = 10
"""The failed tests of as many files are run once more; more of them have another cause than what ran beside them."""

_MOST_TESTS_AGAIN = 40
"""And no more tests than this, all files together: what they share may have failed, and they with it."""

_AGAIN_S = 1200.0
"""Seconds that all of them may take then, so that the results of the passes are printed before CI ends the run."""


@dataclass(frozen=True)
class Pass:
    """Tests that run in one way.

    Attributes:
        name: What it is called.
        select: pytest's expression of markers.
        workers: Worker processes; 0 is pytest's own process.
        threads: Threads that a numeric library may use in each.
        folder: The only one that is collected.
        served_in: Of this folder, only tests that are served are collected; empty for no such folder.
        lengthy: Whether the files run that ``tests/lengthy.txt`` names.
        prepared: Modules that a process imports once, for programs that tests start (``prepared.py``).
    """

    name: str
    select: str
    workers: int
    threads: int
    folder: str = "tests"
    served_in: str = ""
    lengthy: bool = True
    prepared: tuple[str, ...] = ()


_WAITS = "deadlines and not served"
_TRAINERS = "tests/trainers"
_TRAINING = (
    *(f"rstar2_env.trainers.backends.trl.{name}" for name in ("run.run", "sharded_trainer", "sft_trainer")),
    "rstar2_env.trainers.demonstration.tiny",
)

PASSES = {
    one.name: one
    for one in (
        Pass("fast", "not slow and not train and not deadlines", 2, 1, lengthy=False),
        Pass("deadlines", f"{_WAITS} and not proof", 6, 1, "tests/rstar2_env/sandbox"),
        Pass("rest", f"not proof and not ({_WAITS})", 6, 1, served_in=_TRAINERS),
        Pass("trainers", "not served and not proof", 3, 1, _TRAINERS, prepared=_TRAINING),
    )
}
"""Every test but a proof is in exactly one of the last three. What is served stays with the rest: it starts once."""

RESULTS = Path(os.environ.get("RSTAR2_TEST_RESULTS", ROOT / "build" / "tests"))
_RECORDED_S = 5.0
"""``--record`` leaves out files that take fewer seconds."""
_SLOWEST = 20
"""Files of tests whose time is printed at the end."""


@dataclass
class Tally:
    """What came of one or more passes.

    Attributes:
        counts: Tests that passed, failed, were skipped, failed as expected, or met an error outside of themselves.
        reasons: Why tests were skipped or expected to fail, and how many for each reason.
    """

    counts: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, other: Tally) -> None:
        """Take in another's."""
        self.counts += other.counts
        self.reasons += other.reasons

    def line(self, seconds: float) -> str:
        """The counts as pytest words its last line."""
        names = [
            "passed",
            "failed",
            "skipped",
            *(name for name in ("xfailed", "error", "unsteady") if self.counts[name]),
        ]
        return ", ".join(f"{self.counts[name]} {name}" for name in names) + f" in {seconds:.2f}s"

    def steadied(self, number: int) -> None:
        """Count tests that passed when they ran again, and had failed or met an error before."""
        for _ in range(number):
            self.counts["failed" if self.counts["failed"] else "error"] -= 1
        self.counts["passed"] += number
        self.counts["unsteady"] += number


def read(report: Path) -> Tally:
    """Count the tests of a JUnit report that pytest wrote."""
    tally = Tally()
    # A test that fails, and whose end then meets an error, is two cases of the report.
    kinds: dict[tuple[str, str], set[str]] = {}
    for number, case in enumerate(ElementTree.parse(report).getroot().iter("testcase")):
        test = (case.get("classname", ""), case.get("name", str(number)))
        own = {"xfailed" if child.get("type") == "pytest.xfail" else child.tag for child in case}
        kinds.setdefault(test, set()).update(own)
        for skipped in case.iter("skipped"):
            kind = "xfailed" if "xfailed" in own else "skipped"
            tally.reasons[f"{kind}: {skipped.get('message') or 'no reason given'}"] += 1
    for own in kinds.values():
        found = [kind for kind in ("failure", "error", "xfailed", "skipped") if kind in own]
        tally.counts[{"failure": "failed"}.get(found[0], found[0]) if found else "passed"] += 1
    return tally


def command(one: Pass, rest: Sequence[str], report: Path) -> list[str]:
    """What to run for a pass.

    Args:
        one: The pass.
        rest: Further arguments for pytest; with a file or a folder among them, only that is collected.
        report: Where its JUnit report goes.
    """
    found = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "failed_ids",
        "-p",
        "groups",
        "-p",
        "workers",
        f"--junitxml={report}",
        "-m",
        one.select,
    ]
    if not one.lengthy:
        found.append("--without-lengthy")
    if one.served_in:
        found.append(f"--served-in={one.served_in}")
    if one.workers:
        found += ["-n", "0", f"--workers={one.workers}"]
    chosen = any(Path(word.partition("::")[0]).exists() for word in rest)
    return [*found, *([] if chosen else [one.folder]), *rest]


def run(passes: Iterable[Pass], rest: Sequence[str]) -> int:
    """Run the passes, print what came of them, and return the exit code.

    Args:
        passes: In the order in which they run.
        rest: Further arguments for pytest.
    """
    passes, whole, failed, table = list(passes), Tally(), False, []
    started = time.monotonic()
    RESULTS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="rstar2-tests-") as folder:
        ids = Path(folder) / "failed"
        ids.touch()
        for one in passes:
            print(f"\n=== {one.name}: {one.select} (workers: {one.workers or 1})", flush=True)
            report = RESULTS / f"{one.name}.xml"
            report.unlink(missing_ok=True)
            began, spent = time.monotonic(), _cpu_seconds()
            with preparing(one.prepared, _variables(one.threads)) if one.prepared else nullcontext({}) as found:
                code = _pytest(command(one, rest, report), one.threads, ids, more=found)
            failed |= code not in (0, _SOME_FAILED, _NO_TESTS)
            tally = read(report) if report.exists() else Tally(Counter(error=1))
            whole.add(tally)
            took, cpu = time.monotonic() - began, _cpu_seconds() - spent
            table.append(f"{one.name:<10} {tally.line(took)}, {cpu:.0f} s of CPU, exit code {code}")
        unsteady = _run_again(list(dict.fromkeys(ids.read_text().splitlines()))) if not failed else []
    whole.steadied(len(unsteady))
    seconds = file_seconds([RESULTS / f"{one.name}.xml" for one in passes])
    keep_durations(seconds)
    print(f"\n=== the {_SLOWEST} slowest files of tests")
    for file, took in seconds.most_common(_SLOWEST):
        print(f"{took:7.1f} s {file}")
    print("\n=== all passes", *table, sep="\n")
    for reason, count in whole.reasons.most_common():
        print(f"{count} {reason}")
    for name in unsteady:
        print(f"UNSTEADY: {name} failed above, and passed when it ran again with nothing beside it")
    print(whole.line(time.monotonic() - started), flush=True)
    return int(failed or bool(whole.counts["failed"] or whole.counts["error"]))


def file_seconds(reports: Iterable[Path]) -> Counter[str]:
    """Seconds that the tests of each file took, by the JUnit reports that there are."""
    found: Counter[str] = Counter()
    for report in reports:
        for case in ElementTree.parse(report).getroot().iter("testcase") if report.exists() else ():
            found[file_of(case.get("classname", ""))] += float(case.get("time", 0))
    return found


def file_of(classname: str) -> str:
    """The file of a test by its module and class, as JUnit reports have them."""
    parts = classname.split(".")
    while len(parts) > 1 and not (ROOT / "/".join(parts)).with_suffix(".py").is_file():
        parts.pop()
    return "/".join(parts) + ".py"


def keep_durations(seconds: Mapping[str, float]) -> None:
    """Add the seconds of files to those that earlier runs left."""
    file = RESULTS / DURATIONS
    earlier = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    rounded = {name: round(took, 2) for name, took in seconds.items()}
    file.write_text(json.dumps({**earlier, **rounded}, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def record_durations() -> None:
    """Write the seconds of long files, which ``keep_durations`` kept, to the file in the repository."""
    kept = json.loads((RESULTS / DURATIONS).read_text(encoding="utf-8"))
    long = {name: round(took) for name, took in kept.items() if took >= _RECORDED_S and (ROOT / name).exists()}
    RECORDED.write_text(json.dumps(long, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _pytest(
    words: Sequence[str],
    threads: int,
    failed: Path,
    passed: Path | None = None,
    *,
    more: Mapping[str, str] = MappingProxyType({}),
    timeout_s: float | None = None,
) -> int:
    """Run pytest; the ids of tests that failed are added to a file, and those of tests that passed to another.

    Raises:
        subprocess.TimeoutExpired: It took longer than ``timeout_s``.
    """
    given = {**_variables(threads), FAILED: str(failed), **more}
    if passed is not None:
        given[PASSED] = str(passed)
    return subprocess.run(words, cwd=ROOT, env=given, timeout=timeout_s).returncode


def _variables(threads: int) -> dict[str, str]:
    path = os.pathsep.join([str(SUPPORT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {"HF_HUB_OFFLINE": "1", **os.environ, "OMP_NUM_THREADS": str(threads), "PYTHONPATH": path}


def _run_again(names: Sequence[str]) -> list[str]:
    """Run tests that failed once more, file by file with nothing beside them; returns those that pass now."""
    files: dict[str, list[str]] = {name.partition("::")[0]: [] for name in names}
    for name in names:
        files[name.partition("::")[0]].append(name)
    if not names or len(files) > _MOST_AGAIN or len(names) > _MOST_TESTS_AGAIN:
        return []
    print(f"\n=== once more, with nothing beside it: {', '.join(names)}", flush=True)
    until = time.monotonic() + _AGAIN_S
    return [name for found in files.values() for name in _passing(found, until)]


def _passing(names: Sequence[str], until: float) -> list[str]:
    """Those of a file's tests that pass, run together: what they share starts once. None passes after ``until``."""
    with tempfile.TemporaryDirectory(prefix="rstar2-tests-") as folder:
        failed, passed = Path(folder) / "failed", Path(folder) / "passed"
        passed.touch()
        words = [sys.executable, "-m", "pytest", "-p", "failed_ids", "-m", "", *names]
        try:
            code = _pytest(words, 1, failed, passed, timeout_s=max(until - time.monotonic(), 0.0))
        except subprocess.TimeoutExpired:
            return []
        ids = set(passed.read_text().splitlines())
        ids -= set(failed.read_text().splitlines()) if failed.exists() else set()
    return [name for name in names if name in ids] if code in (0, _SOME_FAILED) else []


def _cpu_seconds() -> float:
    """CPU time of every process that has ended below this one."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pass", dest="names", action="append", choices=PASSES, help="run this pass only; repeatable")
    parser.add_argument("--record", action="store_true", help=f"write the seconds of long files to {RECORDED.name}")
    known, rest = parser.parse_known_args()
    code = run([PASSES[name] for name in known.names or ("deadlines", "rest", "trainers")], rest)
    if known.record:
        record_durations()
    return code


if __name__ == "__main__":
    raise SystemExit(main())
