"""What a new run carries over from a checkpoint of an earlier one: the state of its optimizer, if it fits.

Every checkpoint says in ``optimizer.json`` of which optimizer its state is, and of which weights, by group: what does
not fit is told before anything is trained. Not covered: the weights, and the learning rates and their schedule, which
are the new run's own; reading shards (``torch_state``, ``zero_state``).
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
from rstar2_env.core.files.lines import write_json

from ....record.checkpoints import checkpoint_at
from .shards import OPTIMIZER, has_shards

_FILE = "optimizer.json"
_OPTION = "optim.begin_from"
_SHOWN = 3
"""Names that a message lists."""


@dataclass(frozen=True, slots=True)
class Optimized:
    """Which optimizer there is, and what it trains.

    Attributes:
        optimizer: Name of its class.
        groups: The shape of each weight by its name, of each of its groups.
    """

    optimizer: str
    groups: list[dict[str, list[int]]]

    @classmethod
    def of(cls, optimizer: torch.optim.Optimizer, module: nn.Module) -> Optimized:
        """Say it of an optimizer that nothing wraps yet, and of the module whose weights it has."""
        named = {id(weights): (name, weights) for name, weights in module.named_parameters()}
        groups = [[named[id(one)] for one in group["params"]] for group in optimizer.param_groups]
        # What ZeRO-3 divides is empty, and says itself how large it is.
        shapes = [{name: list(getattr(one, "ds_shape", one.shape)) for name, one in group} for group in groups]
        return cls(type(optimizer).__name__, shapes)

    @property
    def shapes(self) -> dict[str, list[int]]:
        """The shape of each weight, in the order in which the optimizer numbers them."""
        return {name: shape for group in self.groups for name, shape in group.items()}

    def write(self, checkpoint: str | Path) -> None:
        """Put it into a checkpoint."""
        write_json(Path(checkpoint) / _FILE, asdict(self))


def checkpoint_to_carry(folder: str | os.PathLike[str]) -> Path:
    """Return the checkpoint that a folder means: itself, or the newest of the run in it.

    Raises:
        ConfigurationError: There is none that was written to its end, or it has no state of an optimizer.
    """
    found = checkpoint_at(Path(folder))
    if found is None:
        raise ConfigurationError(
            f"{folder}, with whose optimizer the run is to begin, holds no finished checkpoint: name the folder of a "
            "run of reinforcement learning, or of one of its checkpoints.",
            option=_OPTION,
        )
    if not ((found / _FILE).exists() and (has_shards(found) or (found / OPTIMIZER_NAME).exists())):
        raise ConfigurationError(
            f"{found} has no {_FILE} with the state of an optimizer beside it: it is no checkpoint of a run of "
            "reinforcement learning, or one of an earlier version.",
            option=_OPTION,
        )
    return found


def check_fits(checkpoint: Path, now: Optimized, *, sharding: str) -> None:
    """Refuse the state of another optimizer, or of other weights.

    Args:
        checkpoint: The checkpoint of the earlier run.
        now: What this run has.
        sharding: What the processes of this run divide.

    Raises:
        ConfigurationError: It does not fit; the message says what is there and what is here.
    """
    before = _read(checkpoint)
    why = next(_differences(before, now), None)
    if why is None and sharding != "none" and not has_shards(checkpoint):
        why = f"it was written without sharding, and this run has sharding={sharding!r}: train both with the same"
    if why is not None:
        raise ConfigurationError(
            f"The optimizer's state in {checkpoint} does not fit this run: {why}. Leave the option out to begin with "
            "a fresh optimizer.",
            option=_OPTION,
        )


def whole_state(checkpoint: Path) -> dict[str, Any]:
    """Read the state of an optimizer that is not in shards, named as in shards."""
    names = list(_read(checkpoint).shapes)
    read = torch.load(checkpoint / OPTIMIZER_NAME, map_location="cpu", weights_only=True)["state"]
    return {
        f"{OPTIMIZER}{names[number]}/{key}": value for number, state in read.items() for key, value in state.items()
    }


def _read(checkpoint: Path) -> Optimized:
    try:
        return Optimized(**json.loads((checkpoint / _FILE).read_text("utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise ConfigurationError(f"{checkpoint / _FILE} cannot be read: {error}", option=_OPTION) from error


def _differences(before: Optimized, now: Optimized) -> Iterator[str]:
    """What does not fit, in words, the most telling first."""
    was, is_ = before.shapes, now.shapes
    if was.keys() != is_.keys():
        yield f"it is of {_weights(was, is_)} there, and this run trains {_weights(is_, was)}"
        return
    for name, shape in was.items():
        if shape != is_[name]:
            yield f"{name} has the shape {tuple(shape)} there and {tuple(is_[name])} here"
    if before.optimizer != now.optimizer:
        yield f"it is of {before.optimizer}, and this run has {now.optimizer} (optim.trl_options.optim)"
    there, here = _group_of(before), _group_of(now)
    for name, number in there.items():
        if number != here[name]:
            yield f"{name} is in group {number} of the optimizer's weights there and in group {here[name]} here"


def _group_of(one: Optimized) -> dict[str, int]:
    return {name: number for number, group in enumerate(one.groups, 1) for name in group}


def _weights(names: Collection[str], others: Collection[str]) -> str:
    """Weights, in words: how many, and some that the others do not have."""
    kind = "LoRA adapters" if any(".lora_" in name for name in names) else "weights of the model"
    alone = [name for name in names if name not in others]
    shown = ", ".join(alone[:_SHOWN]) + (", ..." if len(alone) > _SHOWN else "")
    return f"{len(names)} {kind}" + (f" (of them alone: {shown})" if alone else "")
