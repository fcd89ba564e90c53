"""Write and read the shards of a checkpoint: weights and optimizer state, by torch's distributed checkpoints (DCP).

The tensors are named after the weights, not after processes, so a run with a different number of processes, or a
different kind of sharding, can read them. Not covered: state other than tensors (``process_states``), and exports that
transformers can load (``CollectorTrainer.save_model``).
"""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import Tensor
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.metadata import TensorStorageMetadata
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save

from rstar2_env.core.errors import ConfigurationError

from .plain_metadata import PlainReader, TensorPlanner

FOLDER = "shards"
"""Folder of the shards inside a checkpoint."""
WEIGHTS, OPTIMIZER, REFERENCE = "weights/", "optimizer/", "reference/"
"""Prefixes of tensor names in a checkpoint, for the weights, the optimizer state and the reference model."""
TensorInfo = TensorStorageMetadata
"""Metadata of a tensor in a checkpoint; ``size`` is the shape of the whole tensor."""


def has_shards(checkpoint: str | Path) -> bool:
    """Whether a checkpoint is sharded."""
    return (Path(checkpoint) / FOLDER / ".metadata").exists()


def clear(checkpoint: str | Path) -> None:
    """Remove the old shards of a checkpoint that is rewritten, possibly by fewer processes; one process calls it."""
    shutil.rmtree(Path(checkpoint) / FOLDER, ignore_errors=True)


def write(checkpoint: str | Path, tensors: Mapping[str, Tensor]) -> None:
    """Write the tensors of this process; every process of the run calls it.

    Args:
        checkpoint: Folder of the checkpoint.
        tensors: Tensors by name. If several processes have the same whole tensor, one of them writes it.
    """
    with warnings.catch_warnings(action="ignore"):  # about a single process, and about torch's own deprecated calls
        save(dict(tensors), checkpoint_id=str(Path(checkpoint) / FOLDER), no_dist=_alone())


def listing(checkpoint: str | Path) -> dict[str, TensorInfo]:
    """Return the metadata of a checkpoint's tensors, by name.

    Raises:
        ConfigurationError: The checkpoint cannot be read.
    """
    try:
        found = PlainReader(Path(checkpoint) / FOLDER).read_metadata().state_dict_metadata
    except Exception as error:  # a truncated file may raise any exception
        raise ConfigurationError(f"The weights in the checkpoint {checkpoint} cannot be read: {error}") from error
    return {name: one for name, one in found.items() if isinstance(one, TensorInfo)}


def read(
    checkpoint: str | Path, wanted: Callable[[Mapping[str, TensorInfo]], dict[str, Tensor]], *, alone: bool = False
) -> dict[str, Tensor]:
    """Read tensors of a checkpoint into given tensors of this process, in place; every process must call it.

    Args:
        checkpoint: Folder of the checkpoint.
        wanted: Given the metadata of the checkpoint, returns the tensors to read into, by name.
        alone: Read without synchronizing with the other processes; each process may then read different tensors.

    Raises:
        ConfigurationError: The checkpoint holds the weights of another model, or cannot be read.
    """
    held = listing(checkpoint)
    tensors = wanted(held)
    for name, tensor in tensors.items():
        if name not in held:
            raise ConfigurationError(
                f"The checkpoint {checkpoint} does not contain {name}, so it belongs to another model: choose "
                "a checkpoint of this model."
            )
        if held[name].size != tensor.shape:
            raise ConfigurationError(
                f"In the checkpoint {checkpoint}, {name} has the shape {tuple(held[name].size)} instead "
                f"of {tuple(tensor.shape)}, so it belongs to another model: choose a checkpoint of this "
                "model."
            )
    if tensors:
        try:
            with warnings.catch_warnings(action="ignore"):
                load(
                    tensors,
                    storage_reader=PlainReader(Path(checkpoint) / FOLDER),
                    planner=TensorPlanner(),
                    no_dist=alone or _alone(),
                )
        except CheckpointException as error:  # of every process that failed, and not an ``Exception``
            failed = [f"{type(one).__name__}: {str(one).partition('.')[0]}" for one, _ in error.failures.values()]
            raise ConfigurationError(
                f"The weights in the checkpoint {checkpoint} cannot be read: {'; '.join(failed)}."
            ) from error
    return tensors


def _alone() -> bool:
    """Whether this is the only process."""
    return not (torch.distributed.is_available() and torch.distributed.is_initialized())
