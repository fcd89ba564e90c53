"""``TrainingState``: records, at each optimizer step, the change of the weights, and the memory that the process uses.

The change is measured on a sample of the trainable weights, so that it needs no copy of the model and little time.
Covered: weights that each process holds whole or in part (DDP, FSDP). Not covered: weights that DeepSpeed partitions,
of which no process holds a readable part.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import TrainerCallback

from ....step.sums import Sums

_SAMPLED = 1 << 16
"""Number of weights in the sample, over all tensors; in float32, the sample has 256 KiB."""
_STATES, _VALUES = 64, 1 << 10
"""Maximum number of weight tensors whose optimizer state is sampled, and of values sampled from each."""
_STATM = Path("/proc/self/statm")


class TrainingState(TrainerCallback):
    """Adds ``weights/change``, ``optimizer/...`` and ``memory/process_gib`` to the metrics of each step.

    Args:
        sums: Receives the metrics.
    """

    def __init__(self, sums: Sums) -> None:
        self._sums = sums
        self._before: Tensor | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Store a sample of the weights before the first step."""
        self._before = _sample(kwargs["model"])

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Compare a sample of the weights with the sample of the previous step."""
        after = _sample(kwargs["model"])
        before, self._before = self._before, after
        if before is not None and after is not None and before.shape == after.shape:
            size = float(after.norm())
            self._sums.add("weights/change", float((after - before).norm()) / size if size else 0.0)
        updates, second_moment = _of_optimizer(kwargs.get("optimizer"))
        if updates is not None:
            self._sums.add("optimizer/updates", updates)
        if second_moment is not None:
            self._sums.add("optimizer/second_moment", second_moment)
        self._sums.add("memory/process_gib", process_gib())


@torch.no_grad()
def _sample(model: Any) -> Tensor | None:
    """Return evenly spaced weights of every trainable tensor, in float32; ``None`` if there are none."""
    parts = [part.reshape(-1) for part in _local(model) if part.numel()]
    if not parts:
        return None
    each = max(1, _SAMPLED // len(parts))
    return torch.cat([part[:: -(-part.numel() // each)].float() for part in parts])


def _local(model: Any) -> Iterator[Tensor]:
    for weight in model.parameters():
        if weight.requires_grad:
            held = weight.detach()
            yield held.to_local() if hasattr(held, "to_local") else held


@torch.no_grad()
def _of_optimizer(optimizer: Any) -> tuple[float | None, float | None]:
    """Return an optimizer's number of updates, and its mean second moment over a sample of the weights.

    Either number is ``None`` if the optimizer does not store it. Each weight tensor has its own count of updates, and a
    resume can lose the state of some tensors, so the lowest count is returned.
    """
    states = [own for own in (getattr(optimizer, "state", None) or {}).values() if isinstance(own, dict)]
    sample = states[:: -(-len(states) // _STATES)] if states else []
    counts = [float(own["step"]) for own in sample if "step" in own]
    moments = [part for own in sample if (part := _part_of(own.get("exp_avg_sq"))) is not None]
    return min(counts, default=None), float(torch.cat(moments).mean()) if moments else None


def _part_of(moment: Any) -> Tensor | None:
    """Return evenly spaced values of an optimizer's moment, in float32; ``None`` if this process holds none of it."""
    held = moment.to_local() if hasattr(moment, "to_local") else moment
    if not isinstance(held, Tensor) or not held.numel():
        return None
    return held.reshape(-1)[:: -(-held.numel() // _VALUES)].float()


def process_gib() -> float:
    """Return the resident memory of this process in GiB."""
    if _STATM.exists():
        return int(_STATM.read_text("ascii").split()[1]) * resource.getpagesize() / 2**30
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2 ** (30 if sys.platform == "darwin" else 20)
