"""Variants of the half ``blind``, whose faults were planted by somebody who had not read a threshold of a check."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planted_folders import PlantedFolder
from planted_runs import PlantedRun

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
