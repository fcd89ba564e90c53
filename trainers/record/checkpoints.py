"""Which checkpoints of a run are whole, and which to delete; without torch.

A checkpoint is a folder ``checkpoint-STEP``. Its marker is written last, once every process has written its part, and
is removed first when the folder is deleted or written again: what a kill leaves half done is not resumed from.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

MARKER = "complete.json"
"""File whose presence says that a checkpoint is whole."""
_NAME = re.compile(r"checkpoint-(\d+)")


def step_of(folder: Path) -> int:
    """Return the optimizer steps behind a checkpoint."""
    found = _NAME.fullmatch(folder.name)
    if found is None:
        raise ValueError(f"{folder} is not the folder of a checkpoint.")
    return int(found[1])


def whole_checkpoints(folder: Path) -> list[Path]:
    """Return the checkpoints of a run that were written to the end, oldest first."""
    if not folder.is_dir():
        return []
    return sorted((path for path in _checkpoints(folder) if (path / MARKER).exists()), key=step_of)


def newest_checkpoint(folder: Path) -> Path | None:
    """Return the newest checkpoint that was written to the end."""
    return next(reversed(whole_checkpoints(folder)), None)


def checkpoint_at(folder: Path) -> Path | None:
    """Return a checkpoint that was written to the end: the folder itself, or the newest of the run in it."""
    return folder if (folder / MARKER).exists() else newest_checkpoint(folder)


def mark_unfinished(checkpoint: Path) -> None:
    """Say that a checkpoint is about to be written, again perhaps."""
    (checkpoint / MARKER).unlink(missing_ok=True)


def mark_whole(checkpoint: Path, processes: int) -> None:
    """Say that every process has written its part of a checkpoint."""
    unfinished = checkpoint / f"{MARKER}.part"
    with open(unfinished, "w", encoding="utf-8") as file:
        json.dump({"step": step_of(checkpoint), "processes": processes}, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(unfinished, checkpoint / MARKER)


def processes_of(checkpoint: Path) -> int:
    """Return how many processes wrote a whole checkpoint."""
    found: int = json.loads((checkpoint / MARKER).read_text("utf-8"))["processes"]
    return found


def drop_old(folder: Path, keep: int) -> None:
    """Delete all but the newest ``keep`` whole checkpoints, and older ones that a kill left unfinished."""
    kept = whole_checkpoints(folder)[-keep:]
    if not kept:
        return
    for path in _checkpoints(folder):
        if path not in kept and step_of(path) < step_of(kept[-1]):
            mark_unfinished(path)
            shutil.rmtree(path, ignore_errors=True)


def _checkpoints(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.is_dir() and _NAME.fullmatch(path.name)]
