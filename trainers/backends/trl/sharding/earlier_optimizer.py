"""Loads the optimizer state of an earlier run's checkpoint into a new run (``optim.begin_from``).

The file ``optimizer.json`` of a checkpoint records the optimizer and the weights of each parameter group, so a mismatch
is reported before training begins. Not covered: the weights, the learning rates and their schedule, which are the new
run's own; reading shards (``torch_state``, ``zero_state``).
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers.trainer import OPTIMIZER_NAME

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.files.json_lines import write_json

from ....record.checkpoints import checkpoint_at
from .shards import OPTIMIZER, has_shards

_FILE = "optimizer.json"
_OPTION = "optim.begin_from"
_SHOWN = 3
"""Maximum number of weight names that an error message lists."""


@dataclass(frozen=True, slots=True)
class OptimizerLayout:
    """The class of an optimizer and the weights that it trains.

    Attributes:
        optimizer: Name of the optimizer's class.
        groups: For each parameter group, the shape of each weight by its name.
    """

    optimizer: str
    groups: list[dict[str, list[int]]]

    @classmethod
    def of(cls, optimizer: torch.optim.Optimizer, module: nn.Module) -> OptimizerLayout:
        """Return the layout of an optimizer that updates a module's weights; the optimizer must not be wrapped."""
        named = {id(weights): (name, weights) for name, weights in module.named_parameters()}
        groups = [[named[id(one)] for one in group["params"]] for group in optimizer.param_groups]
        # A weight that ZeRO-3 partitions is empty, and has its full shape in ds_shape.
        shapes = [{name: list(getattr(one, "ds_shape", one.shape)) for name, one in group} for group in groups]
        return cls(type(optimizer).__name__, shapes)

    @property
    def shapes(self) -> dict[str, list[int]]:
        """Shape of each weight, in the optimizer's order."""
        return {name: shape for group in self.groups for name, shape in group.items()}

    def write(self, checkpoint: str | Path) -> None:
        """Write the layout to a checkpoint."""
        write_json(Path(checkpoint) / _FILE, asdict(self))


def checkpoint_to_carry(folder: str | os.PathLike[str]) -> Path:
    """Return the folder itself if it is a checkpoint, otherwise the newest checkpoint of the run in it.

    Raises:
        ConfigurationError: There is no complete checkpoint, or it has no optimizer state.
    """
    found = checkpoint_at(Path(folder))
    if found is None:
        raise ConfigurationError(
            f"The folder {folder} does not contain a complete checkpoint from which the optimizer's state "
            "can be loaded: name the folder of a run of reinforcement learning, or of one of its "
            "checkpoints.",
            option=_OPTION,
        )
    if not ((found / _FILE).exists() and (has_shards(found) or (found / OPTIMIZER_NAME).exists())):
        raise ConfigurationError(
            f"The folder {found} lacks the file {_FILE}, or the optimizer's state: it is not a checkpoint of a "
            "run of reinforcement learning, or an earlier version of rstar2-env wrote it. Name another "
            f"checkpoint, or remove {_OPTION}.",
            option=_OPTION,
        )
    return found


def check_fits(checkpoint: Path, now: OptimizerLayout, *, sharding: str) -> None:
    """Refuse an optimizer state that belongs to another class of optimizer or to other weights than this run's.

    Args:
        checkpoint: The checkpoint of the earlier run.
        now: The optimizer of this run.
        sharding: The sharding of the weights and the optimizer state.

    Raises:
        ConfigurationError: The state does not fit; the message describes the difference.
    """
    before = _read(checkpoint)
    why = next(_differences(before, now), None)
    if why is None and sharding != "none" and not has_shards(checkpoint):
        why = (
            f"the state was written without sharding, but this run has sharding={sharding!r}: use the same "
            "sharding for both"
        )
    if why is not None:
        raise ConfigurationError(
            f"The optimizer's state in {checkpoint} does not fit this run: {why}. Remove {_OPTION} to start with "
            "a new optimizer.",
            option=_OPTION,
        )


def whole_state(checkpoint: Path) -> dict[str, Any]:
    """Read an optimizer state that is not sharded; its tensors get the names that sharded checkpoints use."""
    names = list(_read(checkpoint).shapes)
    read = torch.load(checkpoint / OPTIMIZER_NAME, map_location="cpu", weights_only=True)["state"]
    return {
        f"{OPTIMIZER}{names[number]}/{key}": value for number, state in read.items() for key, value in state.items()
    }


def _read(checkpoint: Path) -> OptimizerLayout:
    try:
        return OptimizerLayout(**json.loads((checkpoint / _FILE).read_text("utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise ConfigurationError(
            f"The file {checkpoint / _FILE} of the checkpoint cannot be read: {error}", option=_OPTION
        ) from error


def _differences(before: OptimizerLayout, now: OptimizerLayout) -> Iterator[str]:
    """Yield descriptions of the differences between two layouts, the most informative first."""
    was, is_ = before.shapes, now.shapes
    if was.keys() != is_.keys():
        yield f"the state belongs to {_weights(was, is_)}, but this run trains {_weights(is_, was)}"
        return
    for name, shape in was.items():
        if shape != is_[name]:
            yield f"{name} has the shape {tuple(shape)} in the checkpoint and {tuple(is_[name])} in this run"
    if before.optimizer != now.optimizer:
        yield (
            f"the state belongs to the optimizer {before.optimizer}, but this run uses {now.optimizer} "
            "(optim.trl_options.optim)"
        )
    there, here = _group_of(before), _group_of(now)
    for name, number in there.items():
        if number != here[name]:
            yield f"{name} is in parameter group {number} in the checkpoint and in group {here[name]} in this run"


def _group_of(one: OptimizerLayout) -> dict[str, int]:
    return {name: number for number, group in enumerate(one.groups, 1) for name in group}


def _weights(names: Collection[str], others: Collection[str]) -> str:
    """Describe weights: their number, and some names that ``others`` does not contain."""
    kind = "LoRA adapters" if any(".lora_" in name for name in names) else "weights of the model"
    alone = [name for name in names if name not in others]
    shown = ", ".join(alone[:_SHOWN]) + (", ..." if len(alone) > _SHOWN else "")
    return f"{len(names)} {kind}" + (f" (only these: {shown})" if alone else "")
