"""``diagnose``: finds the faults of a run, from its folder or from the log of another trainer."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.run_folder.layout import RUN_FILE
from rstar2_env.diagnosis.base import CHECKS, RunCheck
from rstar2_env.diagnosis.folder import read_folder, stages_of
from rstar2_env.diagnosis.foreign import is_foreign, read_foreign
from rstar2_env.diagnosis.foreign_changes import translated
from rstar2_env.diagnosis.record import RunRecord
from rstar2_env.diagnosis.result import Diagnosis, Finding, in_order
from rstar2_env.diagnosis.typed_changes import typed


def diagnose(path: str | os.PathLike[str], *, step: int | None = None) -> Diagnosis:
    """Run all checks on a training run and return their findings.

    Args:
        path: The folder of a run (training, cold start, evaluation, pipeline), the file of an evaluation, or the log
            of another trainer; see docs/diagnosis.md for its form.
        step: Number of the step after which to examine the run, as if it had ended there; ``None`` examines all steps.

    Returns:
        The findings, the checks that found nothing, and the checks for which the run lacks data.

    Raises:
        ConfigurationError: The path is not a run, the run has no step up to ``step``, or ``step`` is given for a
            pipeline, which has no steps of its own.
        RecordFormatError: A line of a file does not have the documented form.
    """
    place = Path(path)
    if stages := _stages(place):
        if step is not None:
            raise ConfigurationError(
                f"{place} is the folder of a pipeline, which has no steps of its own: name the folder of one "
                "of its stages."
            )
        found = {name: diagnose(folder) for name, folder in stages.items()}
        findings = in_order(one for each in found.values() for one in each)
        return Diagnosis(str(place), "pipeline", len(found), findings, stages=found)
    examined = examine(read(place), step=step)
    if not is_foreign(place):
        return examined
    findings = [replace(one, change=translated(one.change, place)) for one in examined.findings]
    return replace(examined, findings=findings)


def read(path: Path) -> RunRecord:
    """Read the record of a run of this package, or of the log of another trainer.

    Raises:
        ConfigurationError: The path is neither a run nor the log of another trainer.
        RecordFormatError: A line of a file does not have the documented form.
    """
    return read_foreign(path) if is_foreign(path) else read_folder(path)


def _stages(place: Path) -> Mapping[str, Path]:
    if not (place / RUN_FILE).is_file():
        return {}
    return stages_of(place)


def examine(run: RunRecord, *, step: int | None = None, checks: Sequence[RunCheck] | None = None) -> Diagnosis:
    """Run every check that applies to a record, and return the findings.

    Args:
        run: The record of a run.
        step: Number of the step after which to examine the run, as if it had ended there; ``None`` examines all steps.
        checks: The checks to run; ``None`` runs all checks.

    Raises:
        ConfigurationError: The run has no step up to ``step``.
    """
    if step is not None:
        if not any(one.number <= step for one in run.steps):
            first = f"its first step is {run.steps[0].number}" if run.steps else "it has no steps"
            raise ConfigurationError(
                f"The run {run.name} does not have a step at or before {step}: {first}.", option="step"
            )
        run = run.until(step)
    found: list[tuple[Finding, Sequence[str], Sequence[str]]] = []
    silent: list[str] = []
    lacking: dict[str, list[str]] = {}
    for check in every_check() if checks is None else checks:
        if run.kind not in check.kinds:
            continue
        lacks = check.lacks(run)
        if lacks:
            lacking[check.name] = lacks
        elif not check.applies(run):
            continue
        elif (evidence := check.look(run)) is not None:
            effects = check.effects if evidence.effects is None else evidence.effects
            found.append((Finding.of(check, evidence, change=typed(check.change, run)), effects, evidence.akin))
        else:
            silent.append(check.name)
    return Diagnosis(run.name, run.kind, run.last, _with_causes(found), silent, lacking)


def _with_causes(found: Sequence[tuple[Finding, Sequence[str], Sequence[str]]]) -> list[Finding]:
    """Return findings in order; each finding names the other findings that can have caused it.

    Args:
        found: Findings, each with two lists of names of checks: checks for faults that this fault usually causes, and
            checks for faults that usually have the same causes as this fault.
    """
    effects = {one.check: names for one, names, _ in found}
    akin = {one.check: {one.check, *names} for one, _, names in found}
    every = in_order(one for one, _, _ in found)

    def causes(effect: Finding) -> tuple[str, ...]:
        return tuple(
            one.check
            for one in every
            if not akin[effect.check].isdisjoint(effects[one.check]) and one.can_cause(effect)
        )

    ordered = in_order(replace(one, caused_by=causes(one)) for one in every)
    places = {one.check: at for at, one in enumerate(ordered)}
    return [replace(one, caused_by=tuple(sorted(one.caused_by, key=places.__getitem__))) for one in ordered]


def every_check() -> list[RunCheck]:
    """Return all registered checks, sorted by name."""
    return [CHECKS.get(name) for name in CHECKS.names()]
