"""``Placement``: the assignment of devices to serving and training, and the memory that it uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import cast

from rstar2_env.core.errors import ConfigurationError

from .architecture import Architecture
from .assumptions import Assumptions
from .device import GIB, Device
from .training_memory import Sharding, Training, pass_tokens, total, training_memory
from .workload import Workload, concurrent_tokens

RESIDENT = ("weights", "optimizer", "reference")
"""Parts of the training memory that stay on a device during rollouts."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The assignment of devices, and whether the run fits.

    Attributes:
        colocated: Whether the same devices serve and train, one after the other; the engine sleeps while they train.
        serving: Number of devices that serve.
        training: Number of devices that train.
        tensor_parallel: Number of devices per engine.
        how: Setup of the training processes.
        memory: Bytes that training uses on a device, by purpose.
        usable: Usable bytes of a device.
        engine_weights: Bytes of weights on a serving device.
        cache_tokens: Number of tokens that fit into the cache of one engine.
        offloaded: Bytes of the optimizer's state that each device copies to host memory before a rollout, and back
            after it.
        lacking: The reason why the run does not fit; empty if it fits.
    """

    colocated: bool
    serving: int
    training: int
    tensor_parallel: int
    how: Training
    memory: Mapping[str, int]
    usable: int
    engine_weights: int
    cache_tokens: int
    offloaded: int
    lacking: str

    @property
    def engines(self) -> int:
        """Number of engines."""
        return self.serving // self.tensor_parallel


def placements(
    model: Architecture,
    device: Device,
    gpus: int,
    work: Workload,
    assume: Assumptions,
    *,
    serve: int | None = None,
    tensor_parallel: int | None = None,
) -> Iterator[Placement]:
    """Yield the placements to compare, including those that do not fit.

    Args:
        model: Sizes of the model.
        device: One device.
        gpus: Number of devices.
        work: The work of a step.
        assume: Assumptions about hardware, software and episodes.
        serve: Number of serving devices; 0 if all devices alternate between serving and training, ``None`` to try
            several numbers.
        tensor_parallel: Number of devices per engine; ``None`` for the smallest number on which the model fits.

    Raises:
        ConfigurationError: ``serve`` is negative, or no device is left for training.
    """
    if serve is not None and not 0 <= serve < gpus:
        raise ConfigurationError(
            f"The number of serving devices must be at least 0 and less than {gpus}, the number of all "
            f"devices; got {serve}. With 0, every device alternates between serving and training.",
            option="serve",
        )
    counts = _splits(gpus) if serve is None else [serve]
    for count in counts:
        training = gpus - count
        how, memory = _training(model, device, training, work, assume)
        yield _placed(model, device, count, how, memory, work, assume, tensor_parallel)


def _splits(gpus: int) -> list[int]:
    """Return the numbers of serving devices to try: 0, and all multiples of an eighth of the devices."""
    return sorted({0} | {gpus * eighths // 8 for eighths in range(1, 8)} - {gpus})


def usable(device: Device, assume: Assumptions) -> int:
    """Return the bytes of a device's memory that a run may use: ``memory_share`` of it, minus ``reserve_gib``."""
    return round(device.memory * assume.memory_share - assume.reserve_gib * GIB)


def training_of(
    model: Architecture, work: Workload, processes: int, assume: Assumptions, *, accelerator: bool
) -> Training:
    """Return the training setup of a number of processes, without sharding.

    Args:
        model: Sizes of the model.
        work: The work of a step.
        processes: Number of training processes.
        assume: Assumptions about hardware, software and episodes.
        accelerator: Whether each process has an accelerator.
    """
    widest = work.budget + assume.prompt_tokens
    rows = work.rows * widest / processes / max(work.minibatches, 1)
    how = Training(
        tokens=max(work.tokens_per_device, widest),
        processes=processes,
        bfloat16=accelerator if work.dtype == "auto" else work.dtype != "float32",
        recompute=accelerator if work.recompute is None else work.recompute,
        lora_rank=work.lora_rank,
        reference=work.reference,
        fused=accelerator,
    )
    if not accelerator:
        how = replace(how, tokens=max(min(work.tokens_per_device, pass_tokens(model, how)), widest))
    return replace(how, passes=1 if rows <= how.tokens else 2)


def _training(
    model: Architecture, device: Device, processes: int, work: Workload, assume: Assumptions
) -> tuple[Training, Mapping[str, int]]:
    """Return the training setup, and the bytes that it uses on a device, by purpose.

    Several processes shard by default, as ``rstar2 launch`` does.
    """
    how = training_of(model, work, processes, assume, accelerator=device.is_accelerator)
    sharding = cast(Sharding, work.sharding or "fsdp2") if processes > 1 else "none"
    how = replace(how, sharding=sharding)
    return how, training_memory(model, how)


def _placed(
    model: Architecture,
    device: Device,
    serving: int,
    how: Training,
    memory: Mapping[str, int],
    work: Workload,
    assume: Assumptions,
    tensor_parallel: int | None,
) -> Placement:
    colocated, most = not serving, usable(device, assume)
    serving = serving or how.processes
    weights, longest = how.width * model.parameters, work.budget + assume.prompt_tokens
    each = model.cache_bytes(how.width)
    room, offloaded = most, 0
    if colocated:
        room -= sum(memory.get(name, 0) for name in RESIDENT)
        short = (room - weights) / each < concurrent_tokens(work, how.processes, assume)
        if work.offload_state or (
            work.offload_state is None and device.is_accelerator and short and not work.sizes_cache
        ):
            offloaded = memory["optimizer"]
            room += offloaded
    # An engine in the trainer's process has one device.
    widths = [tensor_parallel] if tensor_parallel else [1] if colocated else [1, 2, 4, 8]
    width = next((width for width in widths if weights / width + longest * each / width <= room), widths[-1])
    cache = max(0, int((room - weights / width) * width / each))
    if colocated and (sized := work.cache_bytes(device, weights, each, assume)) is not None:
        cache = max(0, int(sized / each))
    lacking = ""
    if total(memory) > most:
        lacking = f"training needs {total(memory) / GIB:.0f} GiB on each device, and {most / GIB:.0f} GiB are usable"
    elif serving % width or (colocated and width > 1):
        lacking = (
            f"{serving} serving devices cannot be divided into engines of {width} "
            f"devices{' that share them with training' if colocated else ''}"
        )
    elif cache * each > room - weights / width + each:
        lacking = (
            f"the engine options of the run reserve {cache * each / GIB:.0f} GiB for the engine's cache, "
            f"but only {max(0.0, room - weights / width) / GIB:.0f} GiB are free"
        )
    elif cache < longest:
        lacking = f"the cache of an engine has room for {cache:,} tokens, but one episode may have {longest:,}"
    return Placement(
        colocated, serving, how.processes, width, how, memory, most, round(weights / width), cache, offloaded, lacking
    )
