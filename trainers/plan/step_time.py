"""``step_time``: seconds of one training step with a placement, by activity."""

from __future__ import annotations

from dataclasses import dataclass

from .architecture import Architecture
from .assumptions import Assumptions
from .device import Device
from .placement import Placement
from .rollout_time import RolloutTime, lengths_of, rollout_seconds
from .training_memory import lora_parameters
from .training_time import TrainingTime, training_time
from .workload import Workload, mean_tokens


@dataclass(frozen=True, slots=True)
class StepTime:
    """Seconds of one step.

    Attributes:
        rollout: Seconds from the start of the episodes to the end of the longest one.
        train: Seconds of the forward and backward passes.
        handover: Seconds of the weight sync to the engines.
        offload: Seconds in which the optimizer's state moves to host memory and back, for rollouts and evaluations.
        evaluation: Seconds of evaluations, spread over the steps between them.
        other: Other seconds, from ``Assumptions.other_share``.
        overlapped: Whether rollout and training run in parallel.
        play: Details of the rollout.
        training: Details of the training.
    """

    rollout: float
    train: float
    handover: float
    offload: float
    evaluation: float
    other: float
    overlapped: bool
    play: RolloutTime
    training: TrainingTime

    @property
    def total(self) -> float:
        """Seconds from one step to the next."""
        phases = max(self.rollout, self.train) if self.overlapped else self.rollout + self.train
        return phases + self.handover + self.offload + self.evaluation + self.other


def step_time(model: Architecture, device: Device, placed: Placement, work: Workload, assume: Assumptions) -> StepTime:
    """Return the seconds of a step.

    Args:
        model: Sizes of the model.
        device: One device, whose speed is known.
        placed: The devices that serve and train, with their memory.
        work: The work of a step.
        assume: Assumptions about hardware, software and episodes.
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
    training = training_time(model, device, placed, work, assume)
    handover = handover_seconds(model, placed, work, assume)
    evaluation = _held_out_seconds(model, device, placed, work, assume, in_flight)
    overlapped = work.max_staleness > 0 and not placed.colocated
    phases = max(play.seconds, training.total) if overlapped else play.seconds + training.total
    moves = 1 + (1 / work.eval_every if work.held_out else 0.0)
    offload = 2 * moves * placed.offloaded / (assume.host_gb_s * 1e9)
    other = assume.other_share * (phases + handover)
    return StepTime(play.seconds, training.total, handover, offload, evaluation, other, overlapped, play, training)


def _held_out_seconds(
    model: Architecture, device: Device, placed: Placement, work: Workload, assume: Assumptions, rows: int
) -> float:
    """Return the mean seconds of evaluation per step.

    The mean length of an evaluation episode is ``assume.mean_tokens``, but at most the evaluation's token budget; if
    ``mean_tokens`` is ``None``, the mean length is half of that budget. An engine plays at most ``rows`` episodes at
    once.
    """
    if not work.held_out:
        return 0.0
    each = -(-work.eval_episodes // placed.engines)
    mean = min(work.max_eval_tokens, assume.mean_tokens or max(1, work.max_eval_tokens // 2))
    lengths = lengths_of(each, mean, work.max_eval_tokens, assume.spread, among=work.eval_episodes)
    most, width = placed.cache_tokens, placed.tensor_parallel
    play = rollout_seconds(model, device, lengths, most, assume, tensor_parallel=width, max_rows=rows)
    return play.seconds / work.eval_every


def handover_seconds(model: Architecture, placed: Placement, work: Workload, assume: Assumptions) -> float:
    """Return the seconds of a weight sync.

    The weights are gathered, and then written or sent, once, at ``handover_gb_s``. With servers on several machines,
    the time also includes reading the weights from a shared folder (by every server, or by one server per machine), or
    a broadcast to all servers.
    """
    size = 2.0 * (lora_parameters(model, work.lora_rank) if work.transport == "adapter" else model.parameters)
    once = size / (assume.handover_gb_s * 1e9)
    if placed.colocated or placed.serving + placed.training <= assume.devices_per_node:
        return once
    return once + copies_of(placed, work, assume) * size / (assume.network_gb_s * 1e9)


def copies_of(placed: Placement, work: Workload, assume: Assumptions) -> int:
    """Return the number of copies of the weights that a weight sync sends over the network or reads from a folder.

    Args:
        placed: A placement with servers.
        work: The work of a step.
        assume: Assumptions about hardware, software and episodes.
    """
    if work.transport == "group":
        return 1
    return min(placed.engines, -(-placed.serving // assume.devices_per_node)) if work.relays else placed.engines
