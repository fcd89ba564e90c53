"""``training_time``: seconds of a step's forward and backward passes: operations, waiting, communication, overhead.

Covered: the operations on the rows; the process with the most tokens, for which all others wait; the exchange of
sharded weights and gradients in each pass; a fixed time per pass. Not covered: the overlap of communication and
computation; the rates in ``Assumptions`` that were fitted to measurements account for it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..step.deal import assign_groups, divide_groups
from .architecture import Architecture
from .assumptions import Assumptions
from .device import Device
from .placement import Placement
from .rollout_time import lengths_of
from .shared_prefixes import pass_work
from .workload import Workload, mean_tokens


@dataclass(frozen=True, slots=True)
class TrainingTime:
    """Seconds of the passes of a step.

    Attributes:
        compute: Seconds of the operations, if every process had the same number of tokens.
        waiting: Further seconds in which processes wait for the process with the most tokens.
        communication: Seconds in which sharded weights are gathered and gradients are reduced.
        overhead: Fixed seconds of the passes.
        passes: Number of forward and backward passes of a process.
    """

    compute: float
    waiting: float
    communication: float
    overhead: float
    passes: int

    @property
    def total(self) -> float:
        """Total seconds of the passes."""
        return self.compute + self.waiting + self.communication + self.overhead


def training_time(
    model: Architecture, device: Device, placed: Placement, work: Workload, assume: Assumptions
) -> TrainingTime:
    """Return the seconds of the forward and backward passes of a step.

    Training once on all rows takes the operations of three forward passes, or of four if layers are recomputed; with
    LoRA, one fewer. The log-probabilities of a reference model take one more forward pass per step.

    Args:
        model: Sizes of the model.
        device: One device.
        placed: The devices that serve and train, with their memory.
        work: The work of a step.
        assume: Assumptions about hardware, software and episodes.

    Raises:
        ValueError: The device's speed is unknown.
    """
    if device.operations is None:
        raise ValueError(
            f"The time of a training step cannot be computed, because the speed of the device {device.name} is unknown."
        )
    lengths = lengths_of(max(1, work.rows), mean_tokens(work, assume), work.budget, assume.spread)
    tokens = lengths + assume.prompt_tokens
    computed, pairs = pass_work(model, work, lengths, assume.prompt_tokens)
    forward = model.forward_operations(computed, pairs / computed)
    times = work.updates * (4.0 if placed.how.recompute else 3.0)
    # With LoRA, the frozen weights have no gradient, which saves the operations of one forward pass.
    if work.lora_rank:
        times -= work.updates
    times += float(work.reference)
    reached = assume.train_share_experts if model.experts else assume.train_share
    compute = forward * times * assume.trained_share / (placed.training * device.operations * reached)
    uneven, passes = _uneven(tokens * (computed / tokens.sum()), work, placed.training, assume)
    passes *= work.updates
    return TrainingTime(
        compute,
        compute * (uneven - 1),
        _exchanged(model, placed, work, passes) / (assume.sharding_gb_s * 1e9),
        passes * assume.pass_s,
        passes,
    )


def _uneven(tokens: NDArray[np.float64], work: Workload, processes: int, assume: Assumptions) -> tuple[float, int]:
    """Distribute the groups over the processes as the trainer does.

    Args:
        tokens: Number of tokens of each row, group after group.
        work: The work of a step.
        processes: Number of training processes.
        assume: Assumptions about hardware, software and episodes.

    Returns:
        The largest load of a process, in tokens, divided by the mean load; and the number of passes.
    """
    groups = max(1, round(work.groups * assume.trained_share))
    sizes = {number: round(float(size)) for number, size in enumerate(tokens.reshape(work.groups, -1).sum(1)[:groups])}
    batches = divide_groups(sizes, passes=1, minibatches=work.minibatches, rng=np.random.default_rng(0))
    home = assign_groups(sizes, batches, processes)
    widest = max(work.tokens_per_device, work.budget + assume.prompt_tokens)
    largest, passes = 0, 0
    for batch in batches:
        loads = np.bincount([home[group] for group in batch], [sizes[group] for group in batch], processes)
        largest += int(loads.max())
        passes += max(1, -(-int(loads.max()) // widest))
    return largest * processes / sum(sizes.values()), passes


def _exchanged(model: Architecture, placed: Placement, work: Workload, passes: int) -> float:
    """Return the bytes that a process sends or receives in a step to gather weights and reduce gradients."""
    others = (placed.training - 1) / placed.training
    trained = 0 if work.lora_rank else model.parameters
    if placed.how.sharding in ("fsdp2", "zero3"):
        # Weights are gathered for the forward and again for the backward pass; gradients are reduced in float32.
        return passes * others * (2 * placed.how.width * model.parameters + 4 * trained)
    # Gradients are reduced once per optimizer step, and the sums are sent back.
    return work.updates * work.minibatches * others * 8 * trained
