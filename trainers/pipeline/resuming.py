"""The state of a training run after a kill: whether it finished, and the checkpoint to resume from."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from rstar2_env.core.run_folder import layout, read_run

from ..record.checkpoints import mark_unfinished, step_of, whole_checkpoints

_STATE = "trainer_state.json"


def is_finished(folder: Path) -> bool:
    """Return whether a run finished and saved its weights."""
    return (folder / layout.RUN_FILE).exists() and read_run(folder).finished


def newest_unfinished(folder: Path, ended_at: Callable[[int], bool] = lambda step: False) -> Path | None:
    """Return the newest checkpoint after which steps remain; remove newer checkpoints, after which none remain.

    If a run is killed after the checkpoint of its last step but before its final weights are saved, a trainer cannot
    resume from that checkpoint, since no steps remain. The steps after the previous checkpoint are then repeated, with
    the same result.

    Args:
        folder: The folder of an unfinished run.
        ended_at: Returns whether a criterion ended the run at or before a step.
    """
    for checkpoint in reversed(whole_checkpoints(folder)):
        step = step_of(checkpoint)
        if step < _steps(checkpoint) and not ended_at(step):
            return checkpoint
        mark_unfinished(checkpoint)
        shutil.rmtree(checkpoint, ignore_errors=True)
    return None


def _steps(checkpoint: Path) -> float:
    try:
        return float(json.loads((checkpoint / _STATE).read_text("utf-8"))["max_steps"])
    except (OSError, ValueError, KeyError):
        return float("inf")
