"""Find the complete checkpoints of a run, and delete old ones; without torch.

A checkpoint is a folder ``checkpoint-STEP``. Its marker is written last, after every process has written its part, and
is removed first when the folder is deleted or written again, so that a run never resumes from an incomplete checkpoint.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

from rstar2_env.core.files.outputs import files_in, list_files

MARKER = "complete.json"
"""File that marks a checkpoint as complete."""
_NAME = re.compile(r"checkpoint-(\d+)")


def step_of(folder: Path) -> int:
    """Return the number of optimizer steps of a checkpoint."""
    found = _NAME.fullmatch(folder.name)
    if found is None:
        raise ValueError(f"The folder {folder} is not the folder of a checkpoint (checkpoint-N).")
    return int(found[1])


def whole_checkpoints(folder: Path) -> list[Path]:
    """Return the complete checkpoints of a run, oldest first."""
    if not folder.is_dir():
        return []
    return sorted((path for path in _checkpoints(folder) if (path / MARKER).exists()), key=step_of)


def newest_checkpoint(folder: Path) -> Path | None:
    """Return the newest complete checkpoint of a run; ``None`` if there is none."""
    return next(reversed(whole_checkpoints(folder)), None)


def checkpoint_at(folder: Path) -> Path | None:
    """Return ``folder`` if it is a complete checkpoint, else the newest complete checkpoint in it, else ``None``."""
    return folder if (folder / MARKER).exists() else newest_checkpoint(folder)


def mark_unfinished(checkpoint: Path) -> None:
    """Mark a checkpoint as incomplete before it is written, written again or deleted."""
    list_files(checkpoint.parent, folders={checkpoint.name: None})
    (checkpoint / MARKER).unlink(missing_ok=True)


def mark_whole(checkpoint: Path, processes: int) -> None:
    """Mark a checkpoint as complete after every process has written its part."""
    unfinished = checkpoint / f"{MARKER}.part"
    with open(unfinished, "w", encoding="utf-8") as file:
        json.dump({"step": step_of(checkpoint), "processes": processes}, file)
        file.flush()
        os.fsync(file.fileno())
    list_files(checkpoint.parent, folders={checkpoint.name: [*files_in(checkpoint), MARKER]})
    os.replace(unfinished, checkpoint / MARKER)


def processes_of(checkpoint: Path) -> int:
    """Return the number of processes that wrote a complete checkpoint."""
    found: int = json.loads((checkpoint / MARKER).read_text("utf-8"))["processes"]
    return found


def drop_old(folder: Path, keep: int) -> None:
    """Delete old checkpoints; keep the newest ``keep`` complete ones, and any that are newer than all complete ones."""
    kept = whole_checkpoints(folder)[-keep:]
    if not kept:
        return
    for path in _checkpoints(folder):
        if path not in kept and step_of(path) < step_of(kept[-1]):
            mark_unfinished(path)
            shutil.rmtree(path, ignore_errors=True)


def _checkpoints(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.is_dir() and _NAME.fullmatch(path.name)]
