"""``make_plan``: memory, placement and seconds per step of a run, with all assumptions."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from rstar2_env.core.errors import ConfigurationError

from .architecture import Architecture
from .assumptions import Assumptions
from .device import GIB, Device
from .placement import Placement, placements
from .step_time import StepTime, step_time
from .training_memory import total
from .workload import Workload, mean_tokens

CLOSE = 0.9
"""Share of the usable memory above which a plan warns that the run may not fit."""
_MUCH = 0.04
"""Share of the training time above which a plan reports the time spent waiting for the process with the most tokens."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Placement, memory and step time of a run, as estimated before it starts.

    Attributes:
        model: Sizes of the model.
        device: One device.
        gpus: Number of devices.
        work: The work of a step.
        assume: Assumptions about hardware, software and episodes.
        placed: The fastest placement that fits; if none fits, the placement whose training uses the least memory.
        time: Seconds of a step; ``None`` if the run does not fit or the device's speed is unknown.
        others: The other placements that fit, with their seconds, fastest first.
    """

    model: Architecture
    device: Device
    gpus: int
    work: Workload
    assume: Assumptions
    placed: Placement
    time: StepTime | None
    others: list[tuple[Placement, StepTime]]

    @property
    def fits(self) -> bool:
        """Whether the run fits on these devices."""
        return not self.placed.lacking

    @property
    def limits(self) -> list[str]:
        """Return a sentence for each bottleneck of the run, most restrictive first, with ways to relieve it."""
        placed, found = self.placed, []
        if placed.lacking:
            found.append(f"{placed.lacking}.{_ways_out(self)}")
        share = total(placed.memory) / placed.usable
        if not placed.lacking and share > CLOSE:
            found.append(
                f"Training uses {share:.0%} of the memory, so the run may not fit: lower "
                "tokens_per_device, or train on more devices."
            )
        if self.time is None:
            return found
        if self.time.play.waves > 1.5:
            found.append(
                f"The cache of an engine has room for only {self.time.play.most_in_flight} of its "
                f"{round(self.time.play.waves * self.time.play.most_in_flight)} episodes at once: more "
                "serving devices or shorter episodes would reduce the time of a rollout."
            )
        if self.time.training.waiting > _MUCH * self.time.train:
            found.append(
                f"In each step, processes wait {self.time.training.waiting:.0f} s for the process with "
                "the most tokens, because a process trains on whole groups: use more groups or fewer "
                "devices."
            )
        apart = placed.serving + placed.training > self.assume.devices_per_node
        if not placed.colocated and apart and self.work.transport == "folder" and not self.work.relays:
            size = 2e-9 * self.model.parameters * placed.engines
            found.append(
                f"{placed.engines} servers read {size:,.0f} GB from one folder at each weight sync: set "
                "engine.relay_dir=/dev/shm, so that one server of each machine copies the weights for "
                "the others; or start the servers with --weight-transfer-config and set "
                "engine.transport=group (vLLM 0.31 or newer)."
            )
        if placed.offloaded:
            devices = min(placed.training, self.assume.devices_per_node)
            found.append(
                "The optimizer's state is moved to host memory during rollouts, which needs "
                f"{placed.offloaded * devices / GIB:,.0f} GiB on each machine and {self.time.offload:.0f} "
                "s in each step."
            )
        longer = "rollout" if self.time.rollout > self.time.train else "training"
        if not placed.colocated and not self.time.overlapped:
            found.append(
                "Serving devices wait while others train, and training devices wait while others serve: "
                "max_staleness=1 lets both work at the same time."
            )
        found.append(f"Most of a step's time is spent on {longer}.")
        return found

    def record(self) -> dict[str, Any]:
        """Return the plan as JSON-compatible values, with memory in bytes and times in seconds."""
        placed = self.placed
        return {
            "model": {
                **asdict(self.model),
                "parameters": self.model.parameters,
                "active_parameters": self.model.active_parameters,
                "cache_bytes_per_token": self.model.cache_bytes(placed.how.width),
            },
            "devices": {**asdict(self.device), "count": self.gpus, "usable": placed.usable},
            "step": {**asdict(self.work), "episodes": self.work.episodes, "rows": self.work.rows}
            | {"mean_tokens": mean_tokens(self.work, self.assume)},
            "fits": self.fits,
            "placement": _placement(placed),
            "training": {**asdict(placed.how), "memory": dict(placed.memory), "total": total(placed.memory)},
            "serving": {"weights": placed.engine_weights, "cache_tokens": placed.cache_tokens}
            | {"offloaded": placed.offloaded},
            "seconds": None if self.time is None else _seconds(self.time),
            "others": [{**_placement(one), "seconds": round(time.total, 1)} for one, time in self.others],
            "limits": self.limits,
            "assumptions": [
                {"name": name, "value": value, "source": source} for name, value, source in self.assume.listed()
            ],
        }


def make_plan(
    model: Architecture,
    device: Device,
    gpus: int,
    work: Workload,
    assume: Assumptions | None = None,
    *,
    serve: int | None = None,
    tensor_parallel: int | None = None,
) -> Plan:
    """Estimate the placement, the memory and the step time of a run.

    Args:
        model: Sizes of the model.
        device: One device.
        gpus: Number of devices.
        work: The work of a step.
        assume: Assumptions about hardware, software and episodes; ``None`` for the default ones.
        serve: Number of serving devices; 0 if all devices alternate between serving and training, ``None`` for the
            fastest number.
        tensor_parallel: Number of devices per engine; ``None`` for the smallest number on which the model fits.

    Raises:
        ConfigurationError: ``gpus``, ``serve`` or ``mean_tokens`` is out of its range.
    """
    if gpus < 1:
        raise ConfigurationError(f"A plan needs at least one device, not {gpus}.", option="gpus")
    assume = assume or Assumptions()
    if assume.mean_tokens is not None and assume.mean_tokens > work.budget:
        raise ConfigurationError(
            f"The assumption mean_tokens={assume.mean_tokens} must not exceed "
            f"max_episode_tokens={work.budget}, the largest number of tokens of an episode.",
            option="mean_tokens",
        )
    found = list(placements(model, device, gpus, work, assume, serve=serve, tensor_parallel=tensor_parallel))
    fitting = [one for one in found if not one.lacking]
    if not fitting:
        least = min(found, key=lambda one: (total(one.memory), -one.cache_tokens))
        return Plan(model, device, gpus, work, assume, least, None, [])
    if not device.is_accelerator:
        return Plan(model, device, gpus, work, assume, fitting[0], None, [])
    timed = [(one, step_time(model, device, one, work, assume)) for one in fitting]
    timed.sort(key=lambda pair: pair[1].total)
    return Plan(model, device, gpus, work, assume, *timed[0], timed[1:])


def _ways_out(plan: Plan) -> str:
    how = plan.placed.how
    ways = []
    if not how.recompute:
        ways.append("recompute layers (model.gradient_checkpointing=true)")
    if how.sharding in ("none", "zero2") and how.processes > 1:
        ways.append("shard the weights (run.sharding=fsdp2)")
    if not how.lora_rank:
        ways.append("train adapters (model.lora_rank=16)")
    widest = plan.work.budget + plan.assume.prompt_tokens
    if how.tokens > widest:
        ways.append(f"lower optim.tokens_per_device to {widest}")
    return f" Ways out: {', '.join([*ways, 'more devices'])}."


def _placement(placed: Placement) -> dict[str, Any]:
    return {
        "colocated": placed.colocated,
        "serving": placed.serving,
        "training": placed.training,
        "engines": placed.engines,
        "tensor_parallel": placed.tensor_parallel,
        "sharding": placed.how.sharding,
        "lacking": placed.lacking,
    }


def _seconds(time: StepTime) -> dict[str, Any]:
    return {
        "rollout": round(time.rollout, 1),
        "train": round(time.train, 1),
        "train_compute": round(time.training.compute, 1),
        "train_waiting": round(time.training.waiting, 1),
        "train_communication": round(time.training.communication, 1),
        "train_overhead": round(time.training.overhead, 1),
        "passes": time.training.passes,
        "handover": round(time.handover, 1),
        "offload": round(time.offload, 1),
        "evaluation": round(time.evaluation, 1),
        "other": round(time.other, 1),
        "total": round(time.total, 1),
        "overlapped": time.overlapped,
        "in_flight_per_engine": time.play.most_in_flight,
        "waves": round(time.play.waves, 2),
    }
