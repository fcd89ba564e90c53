"""Audits generated graders and counts: ``python measured.py [--seed N] [--planted N] [--sound N] [--family NAME]``."""

from __future__ import annotations

import argparse
import secrets
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[1]))

from graders.planted import FAMILIES
from graders.sound import sound
from rstar2_env.evaluation.audit import audit

SOUND = "sound"
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
    """

    found: dict[str, int] = field(default_factory=dict)
    tried: dict[str, int] = field(default_factory=dict)
    missed: list[str] = field(default_factory=list)
    accused: list[str] = field(default_factory=list)
    unconfirmed: int = 0

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
    """Return (family, source) of ``planted`` graders of each family, and of sound ones."""
    for name in families:
        for number in range(planted):
            yield name, FAMILIES[name].draw(number + seed, Random(f"{name} {seed} {number}"))
    for number in range(sounds):
        yield SOUND, sound(Random(f"{SOUND} {seed} {number}"))


def measure(made: Iterator[tuple[str, str]], *, show: bool = False) -> Measured:
    """Audit graders, each in a file of its own."""
    total = Measured()
    with tempfile.TemporaryDirectory(prefix="rstar2-graders-") as folder:
        for number, (family, source) in enumerate(made):
            file = Path(folder) / f"grader_{number}.py"
            file.write_text(source, encoding="utf-8")
            report = audit(f"{file}:grade", deadline_s=DEADLINE_S)
            total.unconfirmed += len(report.unconfirmed)
            total.tried[family] = total.tried.get(family, 0) + 1
            said = "\n".join(f"{one.kind} ({one.cause}): {one.said}" for one in report.findings)
            said += "".join(f"\nunconfirmed: {one}" for one in report.unconfirmed)
            if family == SOUND:
                if report.findings:
                    total.accused.append(f"{source}\n{said}")
            elif any(one.kind in FAMILIES[family].kinds for one in report.findings):
                total.found[family] = total.found.get(family, 0) + 1
            else:
                total.missed.append(f"# {family}\n{source}\n{said or 'nothing found'}")
            if show:
                print(f"{number} {family} {report.seconds:.1f} s, {len(report.findings)} findings", flush=True)
    return total


def main() -> None:
    """Measure, and print the counts and what was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**31))
    parser.add_argument("--planted", type=int, default=10)
    parser.add_argument("--sound", type=int, default=100)
    parser.add_argument("--family", action="append")
    given = parser.parse_args()
    families = tuple(given.family or FAMILIES)
    total = measure(graders(given.seed, given.planted, given.sound, families), show=True)
    for text in (*total.missed, *total.accused):
        print(f"{'-' * 80}\n{text}")
    print(
        f"seed {given.seed}: found {total.found_share:.3f}, accused {total.accused_share:.3f}", total.found, total.tried
    )


if __name__ == "__main__":
    main()
