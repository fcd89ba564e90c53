"""The state that each process adds to a checkpoint, next to the weights: the states of its parts and its pending rows.

There is one file per process. A run that resumes with another number of processes reads all files and redistributes
them: the groups of rows are distributed among the new processes, each row stays in its optimizer batch, and sums of
metrics that are not logged yet are added up. Every other state is the same on all processes. Not covered: weights and
optimizer state (``shards``).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from rstar2_env.core.errors import ConfigurationError

from ....record.checkpoints import processes_of
from ....step.sums import Sums
from ..loss.pending_rows import PendingRows

SUMS = "sums"
"""Name of the state with the sums of metrics since the last logged line; only this state differs between processes."""


def write(checkpoint: Path, rank: int, states: Mapping[str, Any], pending: PendingRows | None) -> None:
    """Write the state of one process.

    Args:
        checkpoint: Folder of the checkpoint.
        rank: Rank of the process, from 0.
        states: State of each part, by name.
        pending: The rows of a rollout whose updates are not finished; ``None`` if there is none.
    """
    packed = {**states, "pending": None if pending is None else pending.state_dict()}
    torch.save(packed, checkpoint / _file(rank))


def read(checkpoint: Path, rank: int, size: int) -> tuple[dict[str, Any], PendingRows | None]:
    """Return the states and the pending rows from which one process resumes.

    Args:
        checkpoint: Folder of the checkpoint.
        rank: Rank of the process, from 0.
        size: Number of processes of the resumed run, which may differ from that of the earlier run.

    Raises:
        ConfigurationError: A file is missing.
    """
    written = processes_of(checkpoint)
    if written == size:
        state = _load(checkpoint, rank)
        return state, None if state["pending"] is None else PendingRows.from_state(state["pending"])
    states = [_load(checkpoint, number) for number in range(written)]
    state = states[0]
    sums = Sums()
    for one in states if rank == 0 else ():
        part = Sums()
        part.load_state_dict(one[SUMS])
        sums.merge(part.take())
    rows = [PendingRows.from_state(one["pending"]) for one in states if one["pending"] is not None]
    return {**state, SUMS: sums.state_dict()}, PendingRows.divided(rows, rank, size) if rows else None


def _load(checkpoint: Path, rank: int) -> dict[str, Any]:
    path = checkpoint / _file(rank)
    if not path.exists():
        raise ConfigurationError(
            f"The checkpoint {checkpoint} is incomplete: the file {path.name} with the state of process "
            f"{rank} is missing. Delete the checkpoint to resume from the previous one."
        )
    state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    return state


def _file(rank: int) -> str:
    return f"run_state_{rank}.pt"
