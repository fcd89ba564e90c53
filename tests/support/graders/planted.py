"""Families of graders with one planted defect: ``families.txt``, and any other text file of this folder in its form.

The families of ``reported/families.txt`` are measured apart. They were written without reading the audit's code, and
the audit is not mended for what it misses of them.

A family is a chapter ``=== NAME: KINDS`` with the kinds of findings as which its defect may appear; its graders are
separated by ``---``. ``«one|two»`` in a grader is one of these, the same at each place. A line ``# same: NAMES``
stands for one of the named comparisons of ``sound.BASES``, which defines ``same(gold, answer)``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from random import Random

from graders.sound import base

_CHAPTER = re.compile(r"^=== (.+): (.+)\n", re.MULTILINE)
_CHOICE = re.compile("«(.+?)»")
_SAME = re.compile(r"^# same: (.+)\n", re.MULTILINE)


@dataclass(frozen=True)
class Family:
    """Graders with one kind of defect.

    Attributes:
        name: Its name.
        kinds: The kinds of findings as which the defect may appear.
        graders: Sources, with choices.
    """

    name: str
    kinds: frozenset[str]
    graders: tuple[str, ...]

    def draw(self, number: int, chance: Random) -> str:
        """Return the source of a grader; consecutive numbers take consecutive sources."""
        source, chosen = self.graders[number % len(self.graders)], {}
        for written in _CHOICE.findall(source):
            chosen.setdefault(written, chance.choice(written.split("|")))
        source = _CHOICE.sub(lambda match: chosen[match[1]], source)
        return _SAME.sub(lambda match: base(chance, tuple(match[1].split())), source)


def read_families(file: Path) -> dict[str, Family]:
    """Read the families of a file by name."""
    _, *parts = _CHAPTER.split(file.read_text(encoding="utf-8"))
    found = {}
    for name, kinds, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        graders = tuple(f"{one.strip()}\n" for one in text.split("\n---\n"))
        found[name] = Family(name, frozenset(kinds.split()), graders)
    return found


FAMILIES: dict[str, Family] = {
    name: family for file in sorted(Path(__file__).parent.glob("*.txt")) for name, family in read_families(file).items()
}
"""The families of every text file of this folder."""
REPORTED: dict[str, Family] = read_families(Path(__file__).parent / "reported" / "families.txt")
"""Families after defects of graders that were reported in public."""
