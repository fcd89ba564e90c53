"""Format the plan of a pipeline as tables: inputs, outputs, end conditions, states and costs of the stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .cost import Cost
from .plan import Made, costs_of
from .progress import duration, seconds_of
from .run import PipelineRun, look_at, tasks_of

STAGES = ("stage", "state", "inputs", "outputs", "ends after")
"""Columns of the table of stages."""
COSTS = ("stage", "kind", "episodes", "tokens", "rows trained on", "time", "assumptions")
"""Columns of the table of costs."""


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables that show the plan of a pipeline.

    Attributes:
        stages: One row per stage, with the columns ``STAGES``.
        costs: One row per stage, with the columns ``COSTS``.
        notes: Sentences below the tables.
    """

    stages: Sequence[Sequence[str]]
    costs: Sequence[Sequence[str]]
    notes: Sequence[str]


_NOTHING_LEFT = ("done", "skipped", "taken", "later")


def plan_table(run: PipelineRun, *, begin: str | None = None, until: str | None = None) -> Tables:
    """Return the plan of a pipeline, without running or writing anything.

    ``begin`` and ``until`` are the first and the last stage of the run; see ``run_pipeline``.
    """
    outlooks = list(look_at(run, begin=begin, until=until))
    costs = costs_of(run.plan, [one.made for one in outlooks])
    tasks = tasks_of(run)
    stages, taken, left, used, unknown = [], [], 0.0, 0.0, []
    for one, cost in zip(outlooks, costs, strict=True):
        made, task = one.made, tasks.get(one.made.step.id)
        seconds = None if task is None else seconds_of(task, list(tasks.values()))
        takes = [f"{option}: {given}" for option, many in made.given.items() for given in many]
        state = f"{one.state}: {one.why}" if one.why else one.state
        stages.append((made.step.id, state, "\n".join(takes), "\n".join(made.stage.outputs), _ends(made, cost)))
        numbers = [_number(cost.episodes), _number(cost.tokens), _number(cost.rows), duration(seconds)]
        taken.append((made.step.id, made.step.spec.kind, *numbers, "; ".join(cost.notes)))
        if one.state not in _NOTHING_LEFT:
            left += seconds or 0.0
            used += (seconds or 0.0) * cost.devices
            if seconds is None:
                unknown.append(made.step.id)
    machine = run.plan.pipeline.machine
    notes = []
    if left:
        by = (
            "from the measured speed of finished stages of the same kind in this folder, or else "
            if any(run.states.values())
            else ""
        )
        least = "At least " if unknown else ""
        notes.append(
            f"{least}{duration(left)} are left on {machine.gpus} x {machine.device.name}, which is "
            f"{used / 3600:,.1f} device hours. This is computed {by}with the assumptions of `rstar2 "
            "plan`; docs/step-costs.md discusses their accuracy."
        )
    if unknown:
        notes.append(f"The time of these stages is unknown: {', '.join(unknown)}.")
    return Tables(stages, taken, notes)


def _ends(made: Made, cost: Cost) -> str:
    ends = [f"{cost.steps} steps"] if cost.steps else []
    until: Any = getattr(made.stage, "until", None)
    if until is not None:
        ends.insert(0, str(until))
    group = made.step.rounds
    if group is not None and made.step.last:
        ends.append(f"round {made.step.round} of {group.times}")
        if group.until is not None:
            ends.append(f"rounds end at {group.of}.{group.until}")
    return ", or ".join(ends)


def _number(number: int) -> str:
    for size, unit in ((10**9, "G"), (10**6, "M")):
        if number >= 10 * size:
            return f"{number / size:,.0f} {unit}"
    return f"{number:,}" if number else ""
