"""``step_time``: seconds of one training step with a placement, by activity."""

from __future__ import annotations

from dataclasses import dataclass

from .architecture import Architecture
from .assumptions import Assumptions
from .device import Device
from .placement import Placement
from .rollout_time import RolloutTime, lengths_of, rollout_seconds
from .workload import Workload


@dataclass(frozen=True, slots=True)
class StepTime:
    """Seconds of one step.

    Attributes:
        rollout: Seconds from the start of the episodes to the end of the longest one.
        train: Seconds of the forward and backward passes.
        handover: Seconds of the weight sync to the engines.
        other: Other seconds, from ``Assumptions.other_share``.
        overlapped: Whether rollout and training run in parallel.
        play: The rollout in more detail.
    """

    rollout: float
    train: float
    handover: float
    other: float
    overlapped: bool
    play: RolloutTime

    @property
    def total(self) -> float:
        """Seconds from one step to the next."""
        phases = max(self.rollout, self.train) if self.overlapped else self.rollout + self.train
        return phases + self.handover + self.other


def step_time(model: Architecture, device: Device, placed: Placement, work: Workload, assume: Assumptions) -> StepTime:
    """Return the seconds of a step.

    Args:
        model: The model.
        device: One device, whose speed is known.
        placed: The placement.
        work: The work of a step.
        assume: The assumptions.
    """
    mean, spread = mean_tokens(work, assume), assume.spread
    each = -(-work.episodes // placed.engines)
    lengths = lengths_of(each, mean, work.budget, spread, among=work.episodes)
    in_flight = max(1, work.in_flight * placed.training // placed.engines)
    play = rollout_seconds(
        model,
        device,
        lengths,
        placed.cache_tokens,
        assume,
        tensor_parallel=placed.tensor_parallel,
        max_rows=in_flight,
    )
    train = train_seconds(model, device, placed, work, assume)
    handover = 2 * model.parameters / (assume.handover_gb_s * 1e9)
    overlapped = work.max_staleness > 0 and not placed.colocated
    phases = max(play.seconds, train) if overlapped else play.seconds + train
    return StepTime(play.seconds, train, handover, assume.other_share * (phases + handover), overlapped, play)


def mean_tokens(work: Workload, assume: Assumptions) -> int:
    """Return the mean number of tokens of an episode after its prompt."""
    return assume.mean_tokens or max(1, work.budget // 2)


def train_seconds(model: Architecture, device: Device, placed: Placement, work: Workload, assume: Assumptions) -> float:
    """Return the seconds of the forward and backward passes of a step.

    An update takes the operations of three forward passes, or of four if layers are recomputed.

    Raises:
        ValueError: The device's speed is unknown.
    """
    if device.operations is None:
        raise ValueError(f"The speed of {device.name} is unknown.")
    lengths = lengths_of(max(1, work.rows), mean_tokens(work, assume), work.budget, assume.spread)
    tokens = lengths + assume.prompt_tokens
    # A token attends to the tokens before it, which is half of a row on average.
    forward = model.forward_operations(float(tokens.sum()), float((tokens**2).sum() / tokens.sum()) / 2)
    passes = work.updates * (4.0 if placed.how.recompute else 3.0)
    # With LoRA, the frozen weights have no gradient, which saves the operations of one forward pass.
    if work.lora_rank:
        passes -= work.updates
    passes += float(work.reference)
    reached = assume.train_share_experts if model.experts else assume.train_share
    share = assume.trained_share
    return float(forward * passes * share / (placed.training * device.operations * reached))
