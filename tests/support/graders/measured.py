"""Audits generated graders and counts: ``python measured.py [--seed N] [--planted N] [--sound N] [--family NAME]``.

A measurement with a record (``--record NAME``) that was stopped continues with its seed when it runs again, if neither
the audit nor the graders changed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import secrets
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from places import ROOT

from graders.planted import FAMILIES, REPORTED
from graders.sound import sound
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.evaluation.audit import audit

AUDIT = ROOT / "rstar2_env" / "evaluation" / "audit"
GRADERS = Path(__file__).parent
RECORDS = ROOT / "build" / "graders"
_UNUSED = ("page.py", "frameworks.py", "ours.py")
"""Files of the audit that no audit of a function uses."""
SOUND = "sound"
ALL = FAMILIES | REPORTED
DEADLINE_S = 3.0


@dataclass
class Measured:
    """What the audits found.

    Attributes:
        found: Graders of each family whose defect was found.
        tried: Graders of each family.
        missed: Sources of the planted defects that were not found.
        accused: Sources of sound graders with a finding, and the findings.
        unconfirmed: Suspicions that their program did not show.
        seconds: Duration of all audits, those of earlier runs included.
    """

    found: dict[str, int] = field(default_factory=dict)
    tried: dict[str, int] = field(default_factory=dict)
    missed: list[str] = field(default_factory=list)
    accused: list[str] = field(default_factory=list)
    unconfirmed: int = 0
    seconds: float = 0.0

    @property
    def found_share(self) -> float:
        planted = {name: count for name, count in self.tried.items() if name != SOUND}
        return sum(self.found.get(name, 0) for name in planted) / max(1, sum(planted.values()))

    @property
    def accused_share(self) -> float:
        return len(self.accused) / max(1, self.tried.get(SOUND, 0))


def graders(
    seed: int, planted: int, sounds: int, families: tuple[str, ...] = tuple(FAMILIES)
) -> Iterator[tuple[str, str]]:
    """Return (family, source) of ``planted`` graders of each family, the families in turn, and of sound ones."""
    for number in range(planted):
        for name in families:
            yield name, ALL[name].draw(number + seed, Random(f"{name} {seed} {number}"))
    for number in range(sounds):
        yield SOUND, sound(Random(f"{SOUND} {seed} {number}"))


class Record:
    """The audits of a measurement, one JSON line each, so that a measurement that was stopped continues.

    Args:
        name: Of the measurement.
    """

    def __init__(self, name: str) -> None:
        digest = hashlib.sha256(name.encode())
        for file in sorted([*AUDIT.rglob("*.py"), *GRADERS.rglob("*.py"), *GRADERS.rglob("*.txt")]):
            if file.name not in _UNUSED:
                digest.update(file.read_bytes())
        self._file = RECORDS / f"{name}-{digest.hexdigest()[:12]}.jsonl"
        if not self._file.exists():
            RECORDS.mkdir(parents=True, exist_ok=True)
            self._file.write_text(json.dumps({"seed": secrets.randbelow(2**31)}) + "\n", encoding="utf-8")
        lines = self._file.read_text(encoding="utf-8").splitlines()
        self.seed: int = json.loads(lines[0])["seed"]
        self._known = [json.loads(line) for line in lines[1:]]

    def known(self, number: int) -> dict[str, Any] | None:
        """Return what was written for a grader, or ``None`` if it has not been audited."""
        return self._known[number] if number < len(self._known) else None

    def add(self, audited: dict[str, Any]) -> None:
        """Write what the audit of the next grader found."""
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(audited) + "\n")

    def close(self) -> None:
        """Remove the record of a whole measurement."""
        self._file.unlink()


def audit_source(source: str) -> dict[str, Any]:
    """Audit a grader in a file of its own; returns the findings, the suspicions without proof and the seconds."""
    with tempfile.TemporaryDirectory(prefix="rstar2-graders-") as folder:
        file = Path(folder) / "grader.py"
        file.write_text(source, encoding="utf-8")
        try:
            report = audit(f"{file}:grade", grade_timeout_s=DEADLINE_S)
        except ConfigurationError as error:  # a defect that is missed, or no accusation
            return {"findings": [], "unconfirmed": [], "seconds": 0.0, "refused": str(error)}
    findings = [[one.kind, one.cause, one.said] for one in report.findings]
    return {"findings": findings, "unconfirmed": list(map(str, report.unconfirmed)), "seconds": report.seconds}


def measure(made: Iterator[tuple[str, str]], *, show: bool = False, record: Record | None = None) -> Measured:
    """Audit graders; those in the record are not audited again."""
    total = Measured()
    for number, (family, source) in enumerate(made):
        audited = record.known(number) if record else None
        if audited is None:
            audited = audit_source(source)
            if record:
                record.add(audited)
            if show:
                print(f"{number} {family} {audited['seconds']:.1f} s, {len(audited['findings'])} findings", flush=True)
        total.unconfirmed += len(audited["unconfirmed"])
        total.seconds += audited["seconds"]
        total.tried[family] = total.tried.get(family, 0) + 1
        said = "\n".join(f"{kind} ({cause}): {text}" for kind, cause, text in audited["findings"])
        said += "".join(f"\nunconfirmed: {one}" for one in audited["unconfirmed"])
        said += audited.get("refused", "")
        if family == SOUND:
            if audited["findings"]:
                total.accused.append(f"{source}\n{said}")
        elif any(kind in ALL[family].kinds for kind, *_ in audited["findings"]):
            total.found[family] = total.found.get(family, 0) + 1
        else:
            total.missed.append(f"# {family}\n{source}\n{said or 'nothing found'}")
    return total


def main() -> None:
    """Measure, and print the counts and what was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**31))
    parser.add_argument("--planted", type=int, default=10)
    parser.add_argument("--sound", type=int, default=100)
    parser.add_argument("--family", action="append")
    parser.add_argument("--reported", action="store_true", help="the families after reported defects")
    parser.add_argument("--record")
    given = parser.parse_args()
    families = tuple(given.family or (REPORTED if given.reported else FAMILIES))
    record = Record(given.record) if given.record else None
    seed = record.seed if record else given.seed
    total = measure(graders(seed, given.planted, given.sound, families), show=True, record=record)
    for text in (*total.missed, *total.accused):
        print(f"{'-' * 80}\n{text}")
    print(f"seed {seed}: found {total.found_share:.3f}, accused {total.accused_share:.3f}", total.found, total.tried)


if __name__ == "__main__":
    main()
