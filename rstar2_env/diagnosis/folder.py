"""Read the folder of a run into a ``RunRecord``: at once, or step by step while the run is in progress."""

from __future__ import annotations

import os
from pathlib import Path

from rstar2_env.core.run_folder import Run, read_run
from rstar2_env.core.run_folder.layout import RUN_FILE, Split, episode_key
from rstar2_env.diagnosis.facts import facts_of
from rstar2_env.diagnosis.record import EpisodeDigest, RunRecord, StepData

STAGES = "stages"


def read_folder(path: str | os.PathLike[str]) -> RunRecord:
    """Read the folder of a run of this package.

    Args:
        path: The folder of a run, or the file of an evaluation.

    Raises:
        ConfigurationError: The path is not a run.
        RecordFormatError: A line of a file does not have the documented form.
    """
    run = read_run(path)
    record = record_of(run)
    if run.kind == "evaluation":
        # The episodes of an evaluation are its only step.
        record.add(StepData(0, {}, held_out_of(run, 0)))
        return record
    figures = {int(line["step"]): line for line in run.metrics()}
    for step in run.steps:
        if step:
            record.add(StepData(step, dict(figures.get(step, {})), played_in(run, step)))
    known = {one.step: dict(one.figures) for one in run.evaluations}
    for step in sorted({*known, *run.evaluated_steps}):
        record.evaluations.append(StepData(step, known.get(step, {}), held_out_of(run, step)))
    return record


def record_of(run: Run) -> RunRecord:
    """Return the record of a run without its steps and evaluations."""
    began = [event for event in run.events if event.get("event") in ("started", "resumed")]
    return RunRecord(
        str(run.path),
        run.kind,  # type: ignore[arg-type]  # the reader accepts the kinds of later versions
        run.config if run.kind != "pipeline" else {},
        resumed=[int(event["step"]) for event in began if event["event"] == "resumed"],
        processes=int(began[-1].get("processes", 1)) if began else 0,
    )


def played_in(run: Run, step: int) -> list[EpisodeDigest]:
    """Return the training episodes of a step, from all processes."""
    return [facts_of(entry, episode_key("train", step, line, rank), rank) for rank, line, entry in run.placed(step)]


def held_out_of(run: Run, step: int) -> list[EpisodeDigest]:
    """Return the episodes of the evaluation after a step."""
    split: Split = "eval"
    return [
        facts_of(entry, episode_key(split, step, line, rank), rank) for rank, line, entry in run.placed(step, split)
    ]


def stages_of(path: Path) -> dict[str, Path]:
    """Return the folders of a pipeline's stages that are runs, by name, in the order in which they began."""
    found: dict[str, Path] = {}
    for event in read_run(path).events:
        if event.get("event") == "stage_began":
            name = str(event["stage"])
            if (path / STAGES / name / RUN_FILE).is_file():
                found.setdefault(name, path / STAGES / name)
    return found
