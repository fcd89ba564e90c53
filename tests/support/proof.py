"""Runs the proofs one after the other and writes what came of them to docs/proof.md: ``python proof.py [for pytest]``.

A proof is a test marked ``proof``: it takes too long for every change, and stands beside a short form that CI runs. It
is run before a change that it is about is called done. A row of the table says when, on which commit, on what machine
and beside how much other work a proof was last run; a proof that was not chosen keeps its row.

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
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

from places import DOCS, ROOT

PAGE = DOCS / "proof.md"
HEAD = """# Proofs

What takes too long to run for every change: `make proof` runs it (`make proof ARGS="-k storm"` runs some of it) and
writes this page. Each is a test marked `proof`, and beside it stands a short form that `make test` runs. A proof is run
again before a change that it is about is called done. The load is that of the whole machine, on average over a minute,
before and after; seconds that were taken beside other work are an upper bound. A commit that the history does not have
was rebased since: the date says which state was tried.

| proof | result | seconds | figures | date (UTC) | commit | machine | load | command |
|---|---|---|---|---|---|---|---|---|
"""
COLUMNS = 9


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
        result = "held"
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
    cells = [f"`{proof.name}`", proof.result, f"{proof.seconds:.0f}", figures, *facts]
    assert len(cells) == COLUMNS
    return "| " + " | ".join(re.sub(r"[|\s]+", " ", cell) for cell in cells) + " |"


def main(arguments: list[str]) -> int:
    """Run, write the page, and return pytest's exit code."""
    began = _load()
    with tempfile.TemporaryDirectory(prefix="rstar2-proof-") as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-m", "proof", "--timeout=7200", f"--junitxml={report}"]
        command += ["-o", "junit_family=xunit1", *arguments]  # the family whose cases may have properties
        code = subprocess.run(command, cwd=ROOT).returncode
        proofs = read(report) if report.exists() else []
    said = f'make proof ARGS="{shlex.join(arguments)}"' if arguments else "make proof"
    facts = [f"{datetime.now(UTC):%Y-%m-%d %H:%M}", _commit(), _machine(), f"{began} to {_load()}", f"`{said}`"]
    table = rows(PAGE.read_text(encoding="utf-8") if PAGE.exists() else "")
    table |= {proof.name: row(proof, facts) for proof in proofs}
    PAGE.write_text(HEAD + "".join(f"{table[name]}\n" for name in sorted(table)), encoding="utf-8")
    print(f"{len(proofs)} proofs were run; the results are in {PAGE.relative_to(ROOT)}.")
    return code


def _load() -> str:
    return f"{os.getloadavg()[0]:.1f}"


def _machine() -> str:
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / (1 << 30)
    return f"{len(os.sched_getaffinity(0))} cores, {memory:.0f} GiB, Python {platform.python_version()}"


def _commit() -> str:
    git = ["git", "-C", str(ROOT)]
    found = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    changed = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True).stdout.strip()
    return (found or "unknown") + (" with changes" if changed else "")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
