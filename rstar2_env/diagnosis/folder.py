"""Reads the folder of a run into a ``RunRecord``: the whole run, or the episodes of single steps during a run."""

from __future__ import annotations

import os
from pathlib import Path

from rstar2_env.core.run_folder import Run, read_run
from rstar2_env.core.run_folder.layout import RUN_FILE, Split, episode_key
from rstar2_env.diagnosis.facts import facts_of
from rstar2_env.diagnosis.record import EpisodeDigest, RunRecord, StepData

STAGES = "stages"


def read_folder(path: str | os.PathLike[str], *, first: int | None = None, last: int = 0) -> RunRecord:
    """Read the folder of a run of this package.

    Args:
        path: The folder of a run, or the file of an evaluation.
        first: Number of steps at the start whose episodes are read; further episodes are read only for the ``last``
            steps at the end and for the last evaluation. ``None`` reads all episodes.
        last: Number of steps at the end whose episodes are read, if ``first`` is given.

    Raises:
        ConfigurationError: The path is not a run.
        RecordFormatError: A line of a file does not have the documented form.
    """
    run = read_run(path)
    record = record_of(run)
    if run.kind == "evaluation":
        # An evaluation is recorded as one step with all episodes.
        record.add(StepData(0, {}, digests_of(run, "eval", 0)))
        return record
    figures = {int(line["step"]): line for line in run.metrics()}
    steps = [step for step in run.steps if step]
    known = {one.step: dict(one.figures) for one in run.evaluations}
    evaluated = sorted({*known, *run.evaluated_steps})
    chosen = {*steps} if first is None else {*steps[:first], *steps[len(steps) - min(last, len(steps)) :]}
    for step in steps:
        record.add(
            StepData(step, dict(figures.get(step, {})), digests_of(run, "train", step) if step in chosen else ())
        )
    for step in evaluated:
        played = digests_of(run, "eval", step) if first is None or step == evaluated[-1] else []
        record.evaluations.append(StepData(step, known.get(step, {}), played))
    return record


def record_of(run: Run) -> RunRecord:
    """Return the record of a run with its options, but without steps and evaluations."""
    began = [event for event in run.events if event.get("event") in ("started", "resumed")]
    return RunRecord(
        str(run.path),
        run.kind,  # type: ignore[arg-type]  # the reader accepts the kinds of later versions
        run.config if run.kind != "pipeline" else {},
        resumed=[int(event["step"]) for event in began if event["event"] == "resumed"],
        processes=int(began[-1].get("processes", 1)) if began else 0,
    )


def digests_of(run: Run, split: Split, step: int, *, without: int | None = None) -> list[EpisodeDigest]:
    """Return the facts of a step's episodes, from the files of all processes or of all but one.

    Args:
        run: Reader of the run's folder.
        split: ``"train"``, or ``"eval"`` for the evaluation after the step.
        step: Number of the step.
        without: Number of the process whose episodes are left out.
    """
    return [
        facts_of(entry, episode_key(split, step, line, rank), rank)
        for rank, line, entry in run.placed(step, split, without=without)
    ]


def stages_of(path: Path) -> dict[str, Path]:
    """Return the run folders of a pipeline's stages, by stage name, in the order in which the stages began."""
    found: dict[str, Path] = {}
    for event in read_run(path).events:
        if event.get("event") == "stage_began":
            name = str(event["stage"])
            if (path / STAGES / name / RUN_FILE).is_file():
                found.setdefault(name, path / STAGES / name)
    return found
