"""``cache_for_vllm``: chooses the cache size of vLLM in the trainer's process, before vLLM starts.

vLLM allocates its cache when it starts, but the optimizer allocates its state at the first step. So the memory that
training will need is computed, as in ``rstar2 plan``, and reserved. If the engine sleeps during training, only the
memory of the optimizer state is reserved, since the cache is freed before gradients are allocated. If in this case the
cache would be too small for the episodes in flight, no memory is reserved on an accelerator: the optimizer state is
moved to host memory while the engine plays (``offload``). Not covered: models whose sizes a plan does not know, and
optimizers other than AdamW.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.rollout.engines.room import free_bytes, token_bytes, total_bytes

from ....options.config import TrainConfig
from ....plan.architecture import Architecture, sizes_in
from ....plan.assumptions import Assumptions
from ....plan.device import GIB
from ....plan.placement import RESIDENT, training_of
from ....plan.training_memory import Training, training_memory
from ....plan.workload import Workload, concurrent_tokens
from ..adapters import base_of
from ..model import dtype_of
from ..sharding.choice import Sharding

MOST_ON_A_CPU = 4 * GIB
"""Maximum size of vLLM's cache on a CPU, where other programs use the same memory; an option can set another size."""
_BLOCK = 128
"""Number of tokens in vLLM's largest cache block, which it uses on a CPU; a conversation occupies whole blocks."""


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """The free and total memory of a device.

    Attributes:
        free: Bytes that this process may allocate on the device in addition to the policy's weights.
        total: Total bytes of the device's memory.
        accelerator: Whether the device is an accelerator.
    """

    free: int
    total: int
    accelerator: bool


@dataclass(frozen=True, slots=True)
class CacheSize:
    """The cache size that was chosen for vLLM, with the reason.

    Attributes:
        size: Size of the cache, in bytes; ``None`` lets vLLM choose.
        why: The reason, in one line.
        offloads: Whether the optimizer's state must be in host memory while the engine is awake.
    """

    size: int | None
    why: str
    offloads: bool = False


def device_memory(device: torch.device, gather: Callable[[int], list[int]]) -> DeviceMemory:
    """Measure the memory of each process's device, before any process starts vLLM.

    All processes call it together. ``free`` is the least free memory of any process's device. On a CPU, this memory is
    divided among the processes of the machine.

    Args:
        device: The device of this process.
        gather: Returns the values that all processes passed to it.
    """
    free, accelerator = min(gather(free_bytes(device))), device.type == "cuda"
    if not accelerator:
        free //= int(os.environ.get("LOCAL_WORLD_SIZE", 1))  # the processes of a machine share its memory
    return DeviceMemory(free, total_bytes(device), accelerator)


def cache_for_vllm(
    config: TrainConfig,
    policy: nn.Module,
    options: Mapping[str, Any],
    room: DeviceMemory,
    *,
    processes: int,
    sharding: Sharding,
) -> CacheSize:
    """Choose the size of vLLM's cache, so that training fits on the device too.

    Args:
        config: Options of the run.
        policy: The policy, on its device.
        options: Options of the engine, ``dtype`` included.
        room: The memory of the device.
        processes: Number of training processes.
        sharding: The sharding of the weights and the optimizer state.

    Raises:
        ConfigurationError: The remaining memory does not hold one conversation.
    """
    model = base_of(policy).config
    try:
        sizes = sizes_in(model.to_dict(), "the policy", where="the policy's configuration")
    except ConfigurationError as error:
        return CacheSize(
            None,
            f"The memory for vLLM's cache cannot be computed, so vLLM chooses the size itself: {error}",
            offloads=bool(config.optim.offload_state),
        )
    assume, dtype = Assumptions(), getattr(torch, str(options["dtype"]), None)
    if not isinstance(dtype, torch.dtype):
        dtype = dtype_of(config.model)
    work = Workload.of(config)
    how = training_of(sizes, work, processes, assume, accelerator=room.accelerator)
    sharding = sharding if processes > 1 else "none"
    how = replace(how, sharding=sharding, bfloat16=dtype_of(config.model) is not torch.float32)
    # On a CPU the program, for which a plan reserves memory, is already loaded.
    spare = (1 - assume.memory_share) * room.total + assume.reserve_gib * GIB
    spare = spare if room.accelerator else (1 - assume.memory_share) * room.free
    weights, each = dtype.itemsize * sizes.parameters, token_bytes(model, dtype)
    longest = int(options.get("max_model_len") or model.get_text_config().max_position_embeddings)
    rows = int(options.get("max_rows") or config.rollout.max_in_flight)
    needed = _needed(rows, longest) * each
    asleep, wanted = bool(options.get("sleep")), config.optim.offload_state
    coming, what = _coming(sizes, how, asleep=asleep)
    left = int(room.free - weights - coming - spare)
    short = left < concurrent_tokens(work, processes, assume) * each
    offloads = bool(wanted) or (wanted is None and asleep and room.accelerator and short)
    if offloads and asleep:
        left, coming, what = left + coming, 0, "the optimizer state, which waits in host memory"
    size, because = min(
        (left, "the remaining memory"),
        (needed, f"the space that {rows} conversations of {longest} tokens need"),
        *(() if room.accelerator else ((MOST_ON_A_CPU, "the maximum on a CPU without engine.kv_cache_gib"),)),
    )
    sum_of_it = (
        f"{room.free / GIB:.2f} GiB of memory are free; of these, {weights / GIB:.2f} are for vLLM's "
        f"weights, {coming / GIB:.2f} for {what}, and {spare / GIB:.2f} are kept in reserve"
    )
    if size < _needed(1, longest) * each:
        sleep = "" if options.get("sleep") or not room.accelerator else "set engine.sleep=true, "
        raise ConfigurationError(
            f"The cache of vLLM would have {max(0, size) / GIB:.2f} GiB ({because}), but one conversation of {longest} "
            f"tokens needs {_needed(1, longest) * each / GIB:.2f} GiB: {sum_of_it}. Lower engine.max_model_len or "
            f"optim.tokens_per_device, {sleep}train adapters (model.lora_rank), divide the weights among more devices "
            "(run.sharding=fsdp2), or set engine.kv_cache_gib yourself.",
            option="rollout.engine_options",
        )
    why = f"The cache of vLLM has {size / GIB:.2f} GiB, {size // each:,} tokens, limited by {because}: {sum_of_it}."
    return CacheSize(size, why, offloads)


def _coming(sizes: Architecture, how: Training, *, asleep: bool) -> tuple[int, str]:
    """Return the bytes that training will allocate after the engine has started, and a text that names the purpose.

    Args:
        sizes: Sizes of the policy.
        how: The training setup.
        asleep: Whether the engine sleeps while the policy is trained, so that only the optimizer state counts.
    """
    memory = training_memory(sizes, how)
    if asleep:
        return memory["optimizer"], "the optimizer state"
    placed = set(RESIDENT) - {"optimizer"}
    return sum(number for name, number in memory.items() if name not in placed), "training"


def _needed(rows: int, longest: int) -> int:
    """Return the cache size, in tokens, for ``rows`` conversations of ``longest`` tokens, with one spare block."""
    return (rows * -(-longest // _BLOCK) + 1) * _BLOCK
