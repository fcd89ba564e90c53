"""The shards of a checkpoint: weights and the optimizer's state, each process's own part, by torch's DCP.

The tensors are named after the weights, and not after processes: a checkpoint that eight wrote is read by one, or by
sixteen, and by another kind of sharding. Not covered: what is not a tensor (``run_states``), and exports that
transformers can load (``CollectorTrainer.save_model``).
"""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.distributed.checkpoint.filesystem import FileSystemReader
from torch.distributed.checkpoint.metadata import TensorStorageMetadata
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save

from rstar2_env.core.errors import ConfigurationError

FOLDER = "shards"
"""Folder of the shards in that of a checkpoint."""
WEIGHTS, OPTIMIZER, REFERENCE = "weights/", "optimizer/", "reference/"
"""Beginnings of the names of tensors."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a checkpoint says of a tensor.

    Attributes:
        shape: Of the whole tensor.
        dtype: Its precision.
    """

    shape: torch.Size
    dtype: torch.dtype


def has_shards(checkpoint: str | Path) -> bool:
    """Whether a checkpoint has its weights in shards."""
    return (Path(checkpoint) / FOLDER / ".metadata").exists()


def clear(checkpoint: str | Path) -> None:
    """Remove the shards of a checkpoint that is written again, perhaps by fewer processes; called by one process."""
    shutil.rmtree(Path(checkpoint) / FOLDER, ignore_errors=True)


def write(checkpoint: str | Path, tensors: Mapping[str, Tensor]) -> None:
    """Write the tensors of this process; every process of the run calls it.

    Args:
        checkpoint: Folder of the checkpoint.
        tensors: By name. A whole tensor that several processes have is written by one of them.
    """
    with _quiet():
        save(dict(tensors), checkpoint_id=str(Path(checkpoint) / FOLDER), no_dist=_alone())


def listing(checkpoint: str | Path) -> dict[str, Wanted]:
    """Return what a checkpoint holds, by name.

    Raises:
        ConfigurationError: It cannot be read.
    """
    try:
        found = FileSystemReader(Path(checkpoint) / FOLDER).read_metadata().state_dict_metadata
    except Exception as error:  # whatever is in a file that is cut off
        raise ConfigurationError(f"The shards of {checkpoint} cannot be read: {error}") from error
    return {
        name: Wanted(one.size, one.properties.dtype)
        for name, one in found.items()
        if isinstance(one, TensorStorageMetadata)
    }


def read(
    checkpoint: str | Path, wanted: Callable[[Mapping[str, Wanted]], dict[str, Tensor]], *, alone: bool = False
) -> dict[str, Tensor]:
    """Read into tensors of this process, in place; every process of the run calls it.

    Args:
        checkpoint: Folder of the checkpoint.
        wanted: Given what it holds, returns the tensors to read into, by name.
        alone: Read without asking the other processes, which may then want other tensors.

    Raises:
        ConfigurationError: It holds the weights of another model, or cannot be read.
    """
    held = listing(checkpoint)
    tensors = wanted(held)
    for name, tensor in tensors.items():
        if name not in held:
            raise ConfigurationError(f"{checkpoint} has no {name}: it is a checkpoint of another model.")
        if held[name].shape != tensor.shape:
            raise ConfigurationError(
                f"{checkpoint} has {name} of the shape {tuple(held[name].shape)}, and {tuple(tensor.shape)} is "
                "expected: it is a checkpoint of another model."
            )
    if tensors:
        with _quiet():
            load(tensors, checkpoint_id=str(Path(checkpoint) / FOLDER), no_dist=alone or _alone())
    return tensors


def _alone() -> bool:
    """Whether this process has no others to talk to."""
    return not (torch.distributed.is_available() and torch.distributed.is_initialized())


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep back torch's warning that one process is alone, and those about its own deprecated calls."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
