"""Runs the proofs one after the other and writes the results to docs/proof.md: ``python proof.py [for pytest]``.

A proof is a test marked ``proof``: it takes too long for every change, and CI runs a short form of it. It must hold
before a change that concerns it is called done. A row of the table says when, on which commit, on what machine and
under how much load a proof was last run; a proof that was not selected keeps its row.

Without arguments, all bridges and tutorials run too (``--sets``: only these), which CI runs if their inputs changed.
``--rows`` runs nothing: it adds rows for proofs that have none and removes those of tests that are gone.

Not covered: whether the figures are good. That is asserted by the proof itself.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

import bridges
import last_full
from places import DOCS, ROOT

sys.path.insert(0, str(ROOT / "tools"))

from results import commit

PAGE = DOCS / "proof.md"
HEAD = """# Proofs

Proofs are tests that take too long to run for every change. `make proof` runs the proofs (`make proof ARGS="-k storm"`
selects some) and writes this page. A proof is a test marked `proof` (`make test` runs a short form), or a test of a
bridge or a tutorial (CI runs it if its inputs changed). Run a proof again before you finish a change that concerns it.
The load is the one-minute load average of the whole machine, before and after the proof; under load, the seconds are
an upper bound. If a commit is not in the history, it was rebased; the date then identifies the tested state.

| proof | result | seconds | figures | date (UTC) | commit | machine | load | command |
|---|---|---|---|---|---|---|---|---|
"""
COLUMNS = 9
_HELD = "held"


@dataclass(frozen=True)
class Proof:
    """What came of one proof.

    Attributes:
        name: File and name of the test.
        result: ``held``, ``failed`` or ``skipped: …``.
        seconds: How long it took.
        figures: What it recorded with ``record_property``.
    """

    name: str
    result: str
    seconds: float
    figures: dict[str, str]


def read(report: Path) -> list[Proof]:
    """The proofs of a JUnit report that pytest wrote."""
    found = []
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        result = _HELD
        for child in case:
            if child.tag in ("failure", "error"):
                result = "failed"
            elif child.tag == "skipped":
                result = f"skipped: {child.get('message')}"
        figures = {str(one.get("name")): str(one.get("value")) for one in case.iter("property")}
        name = f"{case.get('classname', '').removeprefix('tests.').replace('.', '/')}::{case.get('name')}"
        found.append(Proof(name, result, float(case.get("time", 0)), figures))
    return found


def rows(page: str) -> dict[str, str]:
    """The rows of a page by the proof's name."""
    found = {}
    for line in page.splitlines():
        if line.startswith("| `"):
            found[line.split("`")[1]] = line
    return found


def row(proof: Proof, facts: list[str]) -> str:
    """One line of the table."""
    figures = "; ".join(f"{name}: {value}" for name, value in proof.figures.items())
    cells = [f"`{proof.name}`", proof.result, f"{proof.seconds:.0f}" if proof.seconds else "", figures, *facts]
    assert len(cells) == COLUMNS
    return "| " + " | ".join(re.sub(r"[|\s]+", " ", cell) for cell in cells) + " |"


def run_marked(arguments: list[str]) -> tuple[list[Proof], int]:
    """Run the tests marked ``proof``; returns the results and pytest's exit code."""
    with tempfile.TemporaryDirectory(prefix="rstar2-proof-") as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-m", "proof", "--timeout=7200", f"--junitxml={report}"]
        command += ["-o", "junit_family=xunit1", *arguments]  # the family whose cases may have properties
        code = subprocess.run(command, cwd=ROOT).returncode
        return (read(report) if report.exists() else []), code


def run_bridges() -> list[Proof]:
    """Test every bridge against the real packages."""
    found = []
    wanted = [(group, list(group.bridges)) for group in bridges.GROUPS]
    for result in bridges.test_all(wanted, []):
        print(result.output if result.bad else "", result.line, sep="\n", flush=True)
        tests = {"tests": str(result.tally.counts["passed"])}
        found.append(Proof(f"bridges/test_{result.name}", "failed" if result.bad else _HELD, result.seconds, tests))
    last_full.record(proof.name.removeprefix("bridges/test_") for proof in found if proof.result == _HELD)
    return found


def run_tutorials() -> list[Proof]:
    """Run every notebook of ``docs/tutorials``."""
    with tempfile.TemporaryDirectory(prefix="rstar2-proof-") as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", f"--junitxml={report}", "tests/site/test_notebooks.py"]
        subprocess.run(command, cwd=ROOT, env={**os.environ, "RSTAR2_SITE": "1", last_full.FULL: "1"})
        found = [proof for proof in read(report) if "test_a_tutorial_runs" in proof.name] if report.exists() else []
    if found and all(proof.result == _HELD for proof in found):
        last_full.record([last_full.NOTEBOOKS])
    return found


def collected() -> list[str]:
    """Names of all proofs: tests that are marked, bridges and tutorials."""
    command = [sys.executable, "-m", "pytest", "-m", "proof", "--collect-only", "-q", "tests"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    tests = [line for line in said.splitlines() if line.startswith("tests/") and "::" in line]
    names = [re.sub(r"^tests/(.*?)\.py::", r"\1::", line).replace("::", "/", line.count("::") - 1) for line in tests]
    names += [f"bridges/test_{name}" for group in bridges.GROUPS for name in group.bridges]
    tutorials = sorted((DOCS / "tutorials").glob("*.ipynb"))
    return [*names, *(f"site/test_notebooks::test_a_tutorial_runs[{path.stem}]" for path in tutorials)]


def update_rows() -> None:
    """Give every proof a row, and remove the rows of tests that are gone."""
    table = rows(PAGE.read_text(encoding="utf-8"))
    never = {name: row(Proof(name, "not yet run", 0.0, {}), ["", "", "", "", ""]) for name in collected()}
    write({name: table.get(name, text) for name, text in never.items()})


def write(table: Mapping[str, str]) -> None:
    """Write the page with these rows."""
    PAGE.write_text(HEAD + "".join(f"{table[name]}\n" for name in sorted(table)), encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Run, write the page, and return pytest's exit code, or 1 if a bridge or a tutorial failed."""
    if arguments == ["--rows"]:
        update_rows()
        return 0
    began, tested, code, proofs = _load(), _commit(), 0, []
    if arguments != ["--sets"]:
        proofs, code = run_marked(arguments)
    if arguments in ([], ["--sets"]):
        sets = [*run_bridges(), *run_tutorials()]
        code = code or int(any(proof.result != _HELD for proof in sets))
        proofs += sets
    said = f'make proof ARGS="{shlex.join(arguments)}"' if arguments else "make proof"
    facts = [f"{datetime.now(UTC):%Y-%m-%d %H:%M}", tested, _machine(), f"{began} to {_load()}", f"`{said}`"]
    table = rows(PAGE.read_text(encoding="utf-8") if PAGE.exists() else "")
    write(table | {proof.name: row(proof, facts) for proof in proofs})
    print(f"{len(proofs)} proofs were run; the results are in {PAGE.relative_to(ROOT)}.")
    return code


def _load() -> str:
    return f"{os.getloadavg()[0]:.1f}"


def _machine() -> str:
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / (1 << 30)
    return f"{len(os.sched_getaffinity(0))} cores, {memory:.0f} GiB, Python {platform.python_version()}"


def _commit() -> str:
    command = ["git", "-C", str(ROOT), "status", "--porcelain"]
    changed = subprocess.run(command, capture_output=True, text=True).stdout.strip()
    return commit() + (" with changes" if changed else "")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
