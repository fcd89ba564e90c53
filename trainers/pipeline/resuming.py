"""What is left of a training run that was killed: whether it ended, and the checkpoint from which it goes on."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from rstar2_env.core.run_folder import layout, read_run

from ..record.checkpoints import mark_unfinished, step_of, whole_checkpoints

_STATE = "trainer_state.json"


def is_finished(folder: Path) -> bool:
    """Whether a run got to its end, its weights saved."""
    return (folder / layout.RUN_FILE).exists() and read_run(folder).finished


def newest_unfinished(folder: Path, ended_at: Callable[[int], bool] = lambda step: False) -> Path | None:
    """The newest checkpoint after which there are steps to take; those after which there are none are removed.

    A kill between the last checkpoint and the saving of the weights leaves one that no trainer resumes from, as its
    steps are done. The steps before it are taken once more, with the same result.

    Args:
        folder: The folder of a run that did not get to its end.
        ended_at: Whether the run was to end after a step, though it was asked for more.
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
