"""Measures the diagnosis as a detector: faults planted in runs, and clean runs; writes docs/data/diagnosis.json.

``python tests/support/detector.py HALF run`` makes every real run of a half in a temporary folder, and ``HALF folder``
every recorded folder; it diagnoses each as it was after each step, and counts. A fault is named in time if its check finds it at most 3 steps after the step at which it can be
seen (see ``planted_runs`` and ``planted_folders``). Further words select faults; then nothing is written.

Each fault has three variants in each half, with other recipes. In the half ``tried``, on which checks were corrected,
the strengths are the weakest, the middle and the strongest, with the seeds 0 to 2. In the half ``aside``, which was
measured once, after the last correction, strengths and seeds are drawn. Both halves are the work of one author, who
knew the thresholds.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import planted_folders
import planted_runs
from places import DOCS, ROOT
from planted_folders import FOLDERS, PlantedFolder, write_folder
from planted_runs import RUNS, PlantedRun, train

from rstar2_env.diagnosis.base import CHECKS
from rstar2_env.diagnosis.examination import every_check, examine
from rstar2_env.diagnosis.folder import read_folder
from rstar2_env.diagnosis.record import RunRecord
from rstar2_env.trainers.demonstration.tiny import make_tiny_model

FILE = DOCS / "data" / "diagnosis.json"
WITHIN = 3
VARIANTS = 3
CLEAN = 15
HALVES = ("tried", "aside")
PLANTED: dict[str, tuple[Mapping[str, PlantedRun | PlantedFolder], Sequence[str]]] = {
    "run": (RUNS, planted_runs.RECIPES),
    "folder": (FOLDERS, planted_folders.RECIPES),
}
"""Faults and recipes, by what they are planted in."""


@dataclass(frozen=True)
class Variant:
    """One run: a fault, or none, with its half, recipe, seed and strength."""

    half: str
    seed: int
    recipe: str
    strength: float = 1.0


@dataclass(frozen=True)
class Outcome:
    """What came of a planted fault.

    Attributes:
        fault: Name of the fault.
        check: The check that must name it.
        planted: ``run`` or ``folder``.
        variant: The variant.
        seen: Step at which it can be seen; 0 if the run does not show it.
        named: First step at which it was named; 0 if never.
        also: Other checks that had found something by the last step.
    """

    fault: str
    check: str
    planted: str
    variant: Variant
    seen: int
    named: int
    also: tuple[str, ...]

    @property
    def in_time(self) -> bool:
        """Whether it was named in time."""
        return 0 < self.named <= self.seen + WITHIN


def variants(strengths: tuple[float, float], recipes: Sequence[str], name: str) -> Iterator[Variant]:
    """The variants of a fault, in both halves."""
    weak, strong = strengths
    for at in range(VARIANTS):
        share = at / (VARIANTS - 1)
        yield Variant("tried", at, recipes[at], _between(weak, strong, share))
        draw = Random(f"{name}/{at}")
        yield Variant("aside", draw.randrange(1000, 10**6), recipes[at], _between(weak, strong, draw.random()))


def _between(weak: float, strong: float, share: float) -> float:
    if weak > 0 and strong > 0:
        return math.exp(math.log(weak) + share * (math.log(strong) - math.log(weak)))
    return weak + share * (strong - weak)


def outcome(fault: str, plant: PlantedRun | PlantedFolder, variant: Variant, model: Path) -> Outcome:
    """Make the run of a variant, and see when its fault is named."""
    run = _recorded(plant, variant, model)
    check = CHECKS.get(plant.check)
    if isinstance(plant, PlantedRun):
        shown = [step.number for step in run.steps if plant.seen(step.episodes)]
        seen = shown[plant.visible - 1] if len(shown) >= plant.visible else 0
        first = 0
    else:
        seen, first = plant.since + plant.visible - 1, plant.since - 1
    steps = (step.number for step in run.steps)
    named = next((step for step in steps if examine(run, step=step, checks=[check]).names), 0)
    if 0 < named < first:
        named = 0  # before the fault began, it was a false alarm, which ``also`` shows
    also = [name for name in examine(run).names if name != plant.check]
    planted = "run" if isinstance(plant, PlantedRun) else "folder"
    return Outcome(fault, plant.check, planted, variant, seen, named, tuple(also))


def false_alarms(variant: Variant, model: Path, *, real: bool) -> list[str]:
    """The findings of a clean run at any of its steps."""
    run = _recorded(None, variant, model, real=real)
    found = [name for step in run.steps for name in examine(run, step=step.number).names]
    return sorted(set(found))


def _recorded(
    plant: PlantedRun | PlantedFolder | None, variant: Variant, model: Path, *, real: bool = False
) -> RunRecord:
    given: dict[str, Any] = {"strength": variant.strength, "seed": variant.seed, "recipe": variant.recipe}
    with tempfile.TemporaryDirectory(prefix="rstar2-planted-") as place:
        folder = Path(place) / "run"
        if isinstance(plant, PlantedRun):
            train(model, folder, plant, **given)
        elif isinstance(plant, PlantedFolder):
            write_folder(folder, plant, **given)
        elif real:
            train(model, folder, None, **given)
        else:
            write_folder(folder, None, **given)
        return read_folder(folder)


def measure(
    model: Path, half: str, planted: str, words: Sequence[str] = ()
) -> tuple[list[Outcome], list[dict[str, Any]]]:
    """Measure the faults of a half, or some of them, and, without words, the clean runs.

    Args:
        model: Folder of the tiny model.
        half: One of ``HALVES``.
        planted: One of ``PLANTED``.
        words: Parts of the names of the faults to measure.

    Returns:
        The outcomes, and the clean runs with their false alarms.
    """
    every_check()
    plants, recipes = PLANTED[planted]
    outcomes = [
        outcome(name, plant, variant, model)
        for name, plant in plants.items()
        if not words or any(word in name for word in words)
        for variant in variants(plant.strengths, recipes, name)
        if variant.half == half
    ]
    clean = []
    for at in range(0 if words else CLEAN):
        variant = Variant(half, at + (10_000 if half == "aside" else 0), recipes[at % len(recipes)])
        alarms = false_alarms(variant, model, real=planted == "run")
        clean.append({"recipe": variant.recipe, "seed": variant.seed, "alarms": alarms})
    return outcomes, clean


def record(outcomes: Sequence[Outcome], clean: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A measurement as JSON values: counts by fault, each run that was not named in time, false alarms."""
    faults: dict[str, dict[str, Any]] = {}
    for one in outcomes:
        own = faults.setdefault(one.fault, {"check": one.check, "in_time": 0, "runs": 0, "also": {}})
        own["in_time"] += one.in_time
        own["runs"] += 1
        own["also"] = dict(Counter(own["also"]) + Counter(one.also))
    commit = subprocess.run(["git", "rev-parse", "--short=8", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return {
        "commit": commit.stdout.strip(),
        "date": datetime.now(UTC).date().isoformat(),
        "in_time": sum(one.in_time for one in outcomes),
        "runs": len(outcomes),
        "clean": len(clean),
        "false_alarms": [one for one in clean if one["alarms"]],
        "missed": [
            {"fault": one.fault, "seen": one.seen, "named": one.named, **asdict(one.variant)}
            for one in outcomes
            if not one.in_time
        ],
        "faults": faults,
    }


def main() -> None:
    """Measure the faults of a half, or some of them; without words, write the result into the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("half", choices=HALVES)
    parser.add_argument("planted", choices=PLANTED)
    parser.add_argument("words", nargs="*", metavar="WORD", help="parts of the names of the faults to measure")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rstar2-model-") as place:
        model = make_tiny_model(Path(place) / "model", hidden=32, layers=1)
        found = record(*measure(model, given.half, given.planted, given.words))
    print(json.dumps({name: value for name, value in found.items() if name != "faults"}, indent=1))
    if not given.words:
        known = json.loads(FILE.read_text("utf-8"))["measured"] if FILE.exists() else {}
        known = {**known, f"{given.half} {given.planted}": found}
        places = [f"{half} {planted}" for half in HALVES for planted in PLANTED]
        page = {
            "command": "python tests/support/detector.py HALF run|folder",
            "within": WITHIN,
            "measured": {place: known[place] for place in places if place in known},
        }
        FILE.write_text(json.dumps(page, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
