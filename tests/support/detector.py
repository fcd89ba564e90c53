"""Measures the diagnosis as a detector: faults planted in runs, and clean runs; writes benchmarks/diagnosis.json.

``python tests/support/detector.py HALF run`` makes every real run of a half in a temporary folder, and ``HALF folder``
every recorded folder; it diagnoses each as it was after each step, and counts. A fault is named in time if its check
finds it at most 3 steps after the step at which it can be seen (see ``planted_runs`` and ``planted_folders``). An
interrupted measurement goes on when it is started again; ``--fresh`` begins it.

Each fault has three variants in each half, with other recipes. In the half ``tried``, on which checks were corrected,
the strengths are the weakest, the middle and the strongest, with the seeds 0 to 2. In the half ``aside``, which is
measured after the last correction, strengths and seeds are drawn. The ranges of the strengths were chosen with the
thresholds known. The halves ``opened``, ``opened2`` and ``blind`` have their own runs (modules ``*_runs`` and
``*_folders``), with other forms of the faults and another rule for when they can be seen, whose authors did not know
the thresholds; ``later`` has such clean runs alone (``later_clean``). The file of the results keeps the first
measurement of each of these, before a check was corrected on it, as ``opened-first`` and so on.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

import planted_folders
import planted_runs
from blind import Blind, Seen
from blind_folders import BLIND_FOLDERS, CLEAN_FOLDERS
from blind_runs import BLIND_RUNS, CLEAN_RUNS
from later_clean import LATER_CLEAN_FOLDERS, LATER_CLEAN_RUNS
from opened2_folders import CLEAN_OPENED2_FOLDERS, OPENED2_FOLDERS
from opened2_runs import CLEAN_OPENED2_RUNS, OPENED2_RUNS
from opened_folders import CLEAN_OPENED_FOLDERS, OPENED_FOLDERS
from opened_runs import CLEAN_OPENED_RUNS, OPENED_RUNS
from places import BENCHMARKS, ROOT
from planted_folders import FOLDERS, PlantedFolder, write_folder
from planted_runs import LATER, RUNS, PlantedRun, train

from rstar2_env.core.files.outputs import replacing
from rstar2_env.diagnosis.base import CHECKS
from rstar2_env.diagnosis.checks.entropy import LOWEST
from rstar2_env.diagnosis.checks.signal import signal_shares
from rstar2_env.diagnosis.examination import every_check, examine
from rstar2_env.diagnosis.folder import read_folder
from rstar2_env.diagnosis.record import RunRecord
from rstar2_env.trainers.demonstration.tiny import make_tiny_model

sys.path.insert(0, str(ROOT / "tools"))

from results import source

FILE = BENCHMARKS / "diagnosis.json"
WITHIN = 3
VARIANTS = 3
CLEAN = 15
LEAST_SIGNAL = 0.2
HALVES = ("tried", "aside", "opened", "opened2", "blind", "later")
RECORDED = ("tried", "aside", *(f"{half}{kind}" for half in HALVES[2:] for kind in ("-first", "")))
"""Halves of the file of the results; those that end in ``-first`` are not measured again."""
PLANTED: dict[str, tuple[Mapping[str, PlantedRun | PlantedFolder], Sequence[str]]] = {
    "run": (RUNS, planted_runs.RECIPES),
    "folder": (FOLDERS, planted_folders.RECIPES),
}
"""Faults and recipes, by what they are planted in."""
OWN: dict[str, dict[str, tuple[Mapping[str, Sequence[Blind]], Sequence[Blind]]]] = {
    "opened": {"run": (OPENED_RUNS, CLEAN_OPENED_RUNS), "folder": (OPENED_FOLDERS, CLEAN_OPENED_FOLDERS)},
    "opened2": {"run": (OPENED2_RUNS, CLEAN_OPENED2_RUNS), "folder": (OPENED2_FOLDERS, CLEAN_OPENED2_FOLDERS)},
    "blind": {"run": (BLIND_RUNS, CLEAN_RUNS), "folder": (BLIND_FOLDERS, CLEAN_FOLDERS)},
    "later": {"run": ({}, LATER_CLEAN_RUNS), "folder": ({}, LATER_CLEAN_FOLDERS)},
}
"""Faults and clean runs of the halves that have their own, by what they are planted in."""


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


def outcome(
    fault: str, plant: PlantedRun | PlantedFolder, variant: Variant, model: Path, rule: Seen | None = None
) -> Outcome:
    """Make the run of a variant, and see when its fault is named; ``rule`` replaces the plant's own."""
    run = _recorded(plant, variant, model)
    check = CHECKS.get(plant.check)
    if isinstance(plant, PlantedRun):
        shown = [step.number for step in run.steps if plant.seen(step.episodes)]
        seen = shown[plant.visible - 1] if len(shown) >= plant.visible else 0
        first = 0
    else:
        seen, first = plant.since + plant.visible - 1, plant.since - 1
    if rule is not None:
        seen = rule(run)
    steps = (step.number for step in run.steps)
    named = next((step for step in steps if examine(run, step=step, checks=[check]).names), 0)
    if 0 < named < first:
        named = 0  # before the fault began, it was a false alarm, which ``also`` shows
    also = [name for name in examine(run).names if name != plant.check]
    planted = "run" if isinstance(plant, PlantedRun) else "folder"
    return Outcome(fault, plant.check, planted, variant, seen, named, tuple(also))


def clean_run(variant: Variant, model: Path, *, real: bool) -> RunRecord:
    """Make a run without a fault: a real one, or a recorded folder."""
    return _recorded(None, variant, model, real=real)


def is_clean(run: RunRecord) -> bool:
    """Whether a run counts as clean, by a rule that was fixed before the measurement.

    At least ``LEAST_SIGNAL`` of its groups have a signal, the mean of its last three entropies is at least
    ``entropy.LOWEST``, and its last held-out pass rate is at most two standard errors below its first.
    """
    shares = signal_shares(run)
    signal = sum(share for _, _, share in shares)
    groups = signal + sum(sum(reasons.values()) for _, reasons, _ in shares)
    entropy = [value for _, value in run.series("policy/entropy")][-3:]
    held_out = [one.figures for one in run.evaluations if {"pass_rate", "pass_rate_se"} <= one.figures.keys()]
    fallen = held_out and held_out[-1]["pass_rate"] < held_out[0]["pass_rate"] - 2 * held_out[0]["pass_rate_se"]
    return bool(groups and signal >= LEAST_SIGNAL * groups and entropy and fmean(entropy) >= LOWEST and not fallen)


def false_alarms(run: RunRecord) -> list[str]:
    """The findings of a clean run at any of its steps."""
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
    model: Path, half: str, planted: str, known: Mapping[str, Any] | None = None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Measure the faults of a half, and its clean runs.

    Args:
        model: Folder of the tiny model.
        half: One of ``HALVES``.
        planted: One of ``PLANTED``.
        known: Results of an interrupted measurement, which are not measured again.

    Yields:
        The name of a fault, and its result: the check that must name it, in how many runs it was named in time, the
        runs in which it was not, and what else was named. The last name is ``clean``, with the false alarms.
    """
    every_check()
    plants, recipes = PLANTED[planted]
    own_faults, clean = OWN[half][planted] if half in OWN else ({}, ())
    if half in OWN:
        plants = {name: plants[name] for name in own_faults}
    elif planted == "run":
        plants = {**plants, **LATER}
    for name, plant in plants.items():
        if name in (known or {}):
            continue
        if half in OWN:
            found = [outcome(name, one.plant, _variant(half, one), model, one.seen) for one in own_faults[name]]
        else:
            own = [one for one in variants(plant.strengths, recipes, name) if one.half == half]
            found = [outcome(name, plant, variant, model) for variant in own]
        yield name, counted(found)
    if "clean" not in (known or {}):
        alarms, runs = [], 0
        for at in range(CLEAN):
            if half in OWN:
                variant = _variant(half, clean[at])
                run = _recorded(clean[at].plant, variant, model)
            else:
                variant = Variant(half, at + (10_000 if half == "aside" else 0), recipes[at % len(recipes)])
                run = clean_run(variant, model, real=planted == "run")
            runs += is_clean(run)
            if is_clean(run) and (alarm := false_alarms(run)):
                alarms.append({"recipe": variant.recipe, "seed": variant.seed, "alarms": alarm})
        yield "clean", {"runs": runs, "false_alarms": alarms}


def _variant(half: str, blind: Blind) -> Variant:
    return Variant(half, blind.seed, blind.recipe, blind.strength)


def counted(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The result of a fault as JSON values."""
    missed = [
        {"seen": one.seen, "named": one.named, "recipe": one.variant.recipe, "strength": one.variant.strength}
        for one in outcomes
        if not one.in_time
    ]
    return {
        "check": outcomes[0].check,
        "in_time": len(outcomes) - len(missed),
        "runs": len(outcomes),
        "also": dict(Counter(name for one in outcomes for name in one.also)),
        "missed": missed,
    }


def main() -> None:
    """Measure a half, and write each result into the file; an interrupted measurement goes on."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("half", choices=HALVES)
    parser.add_argument("planted", choices=PLANTED)
    parser.add_argument("--fresh", action="store_true", help="measure again what the file has")
    given = parser.parse_args()
    known = {} if given.fresh else _measured().get(f"{given.half} {given.planted}", {}).get("results", {})
    with tempfile.TemporaryDirectory(prefix="rstar2-model-") as folder:
        model = make_tiny_model(Path(folder) / "model", hidden=32, layers=1)
        record(model, given.half, given.planted, known)


def record(model: Path, half: str, planted: str, known: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Measure a half as ``measure`` does; write and print each result, and return all."""
    found = dict(known or {})
    for name, result in measure(model, half, planted, known):
        found[name] = result
        _write(f"{half} {planted}", found)
        print(name, json.dumps(result), flush=True)
    return found


def _measured() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(FILE.read_text("utf-8"))["measured"] if FILE.exists() else {}
    return found


def _write(place: str, results: Mapping[str, Any]) -> None:
    date = datetime.now(UTC).date().isoformat()
    now = {**source(f"python tests/support/detector.py {place}"), "date": date, "results": results}
    every = {**_measured(), place: now}
    places = [f"{half} {planted}" for half in RECORDED for planted in PLANTED]
    page = {
        "within": WITHIN,
        "measured": {one: every[one] for one in places if one in every},
    }
    with replacing(FILE) as partial:
        partial.write_text(json.dumps(page, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
