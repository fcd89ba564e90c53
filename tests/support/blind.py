"""Variants of the halves ``blind``, ``opened`` and ``opened2``, planted by people who had not read a check's threshold.

The halves ``opened`` and ``opened2`` were blind until checks were corrected on them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from planted_folders import FOLDERS, PlantedFolder
from planted_runs import RUNS, PlantedRun

if TYPE_CHECKING:
    from rstar2_env.diagnosis.record import RunRecord

Seen = Callable[["RunRecord"], int]


@dataclass(frozen=True)
class Blind:
    """One planted fault, or one clean run.

    Attributes:
        plant: What is planted; nothing, in a clean run.
        recipe: The recipe.
        seed: Seed of the run.
        strength: Strength of the fault.
        seen: Step at which it can be seen, by the run's episodes or figures and the knowledge of what was planted; 0
            if the run does not show it. ``None`` uses the rule of the plant.
    """

    plant: PlantedRun | PlantedFolder
    recipe: str
    seed: int
    strength: float = 1.0
    seen: Seen | None = None


RunVariant = tuple[str, int, float, Mapping[str, Any], Mapping[str, Any]]
"""Recipe, seed, strength, options in addition to the fault's own, and other attributes of the plant."""
FolderVariant = tuple[str, int, float, Mapping[str, Any], "int | Callable[[int], Seen]"]
"""Recipe, seed, strength, changes of the plant, and when the fault can be seen: number of faulty steps, or a rule."""


def own(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Options that replace those of the fault."""
    return {"options": lambda strength: options}


def run_variants(faults: Mapping[str, Sequence[RunVariant]]) -> dict[str, tuple[Blind, ...]]:
    """The variants of each fault of a real run, by its name."""
    return {
        name: tuple(Blind(_with(RUNS[name], more, changes), *first) for *first, more, changes in variants)
        for name, variants in faults.items()
    }


def _with(plant: PlantedRun, more: Mapping[str, Any], changes: Mapping[str, Any]) -> PlantedRun:
    changed = replace(plant, **changes)
    return replace(changed, options=lambda strength: {**changed.options(strength), **more})


def clean_run(
    recipe: str, seed: int, steps: int = 10, options: Mapping[str, Any] | None = None, **changes: Any
) -> Blind:
    """A real run without a fault."""
    return Blind(PlantedRun("", options=lambda strength: options or {}, steps=steps, **changes), recipe, seed)


def named(half: str, faults: Mapping[str, Sequence[Blind]], clean: Sequence[Blind]) -> dict[str, PlantedRun]:
    """The real runs of a half, by names that the processes of a run use."""
    runs = {**faults, "clean": clean}
    return {
        f"{half}: {name} {at}": one.plant
        for name, variants in runs.items()
        for at, one in enumerate(variants)
        if isinstance(one.plant, PlantedRun)
    }


def rule(seen: Callable[..., int], *given: Any) -> Callable[[int], Seen]:
    """A rule that depends on the first faulty step."""
    return lambda since: partial(seen, *given, since)


def folder_variants(faults: Mapping[str, Sequence[FolderVariant]]) -> dict[str, tuple[Blind, ...]]:
    """The variants of each fault of a recorded folder, by its name."""
    return {name: tuple(_folder(FOLDERS[name], *one) for one in variants) for name, variants in faults.items()}


def _folder(
    fault: PlantedFolder,
    recipe: str,
    seed: int,
    strength: float,
    changes: Mapping[str, Any],
    seen: int | Callable[[int], Seen],
) -> Blind:
    changed = replace(fault, **{**changes, "made": {**fault.made, **changes.get("made", {})}})
    if isinstance(seen, int):
        steps = max(changed.steps, changed.since + seen + 6)
        return Blind(replace(changed, visible=seen, steps=steps), recipe, seed, strength)
    return Blind(changed, recipe, seed, strength, seen(changed.since))


def clean_folder(
    recipe: str, seed: int, steps: int = 26, strength: float = 1.0, *, check: str = "", **changes: Any
) -> Blind:
    """A recorded folder without a fault."""
    made = {"problems": 120, "eval_every": 8, "slips": (0.3, 0.1)} | dict(changes.pop("made", {}))
    plant = PlantedFolder(check, steps=steps, since=changes.pop("since", 1), made=made, **changes)
    return Blind(plant, recipe, seed, strength)
