"""``cache_for_vllm``: how large the cache of a vLLM in the trainer's process may be, known before vLLM starts.

vLLM fixes its cache when it starts, and the optimizer makes its state at the first step: what training is going to
allocate is computed, as ``rstar2 plan`` does, and left to it. An engine that sleeps while the weights train leaves room
for the optimizer's state alone, since its cache is not there when there are gradients. Not covered: models whose sizes
a plan does not know, and optimizers other than AdamW.
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
from ....plan.workload import Workload
from ..adapters import base_of
from ..model import dtype_of
from ..sharding.choice import Sharding

SIZED_BY = ("kv_cache_gib", "gpu_memory_utilization", "kv_cache_memory_bytes", "num_gpu_blocks_override")
"""Options of the engine with which a user says how large the cache is."""
MOST_ON_A_CPU = 4 * GIB
"""A cache in the machine's own memory, which others use too, is not larger than this unless an option says so."""
_BLOCK = 128
"""Tokens of vLLM's largest block, that of a CPU; a conversation takes whole blocks."""


@dataclass(frozen=True, slots=True)
class Room:
    """What a device has.

    Attributes:
        free: Bytes that this process may still allocate on it, its weights being there already.
        total: Bytes of its memory.
        accelerator: Whether it is an accelerator.
    """

    free: int
    total: int
    accelerator: bool


@dataclass(frozen=True, slots=True)
class Cache:
    """What was chosen.

    Attributes:
        size: Bytes; ``None`` leaves it to vLLM.
        why: The reason, in one line.
    """

    size: int | None
    why: str


def room_on(device: torch.device, gather: Callable[[int], list[int]]) -> Room:
    """Measure a device, in all processes together and before one of them takes anything; the least room is everyone's.

    Args:
        device: The device of this process.
        gather: Returns the values of all processes.
    """
    free, accelerator = min(gather(free_bytes(device))), device.type == "cuda"
    if not accelerator:
        free //= int(os.environ.get("LOCAL_WORLD_SIZE", 1))  # the processes of a machine share its memory
    return Room(free, total_bytes(device), accelerator)


def cache_for_vllm(
    config: TrainConfig,
    policy: nn.Module,
    options: Mapping[str, Any],
    room: Room,
    *,
    processes: int,
    sharding: Sharding,
) -> Cache:
    """Return how large the cache is to be.

    Args:
        config: Options of the run.
        policy: The policy, on its device.
        options: Those of the engine, ``dtype`` included.
        room: What the device has.
        processes: Processes that train.
        sharding: What they divide.

    Raises:
        ConfigurationError: What is left does not hold one conversation.
    """
    model = base_of(policy).config
    try:
        sizes = sizes_in(model.to_dict(), "the policy", where="the policy's configuration")
    except ConfigurationError as error:
        return Cache(None, f"The size of vLLM's cache is left to vLLM: {error}")
    assume, dtype = Assumptions(), getattr(torch, str(options["dtype"]), None)
    if not isinstance(dtype, torch.dtype):
        dtype = dtype_of(config.model)
    how = training_of(Workload.of(config), processes, assume, accelerator=room.accelerator)
    how = replace(how, sharding=sharding if processes > 1 else "none")
    how = replace(how, bfloat16=dtype_of(config.model) is not torch.float32)
    coming, what = _coming(sizes, how, asleep=bool(options.get("sleep")))
    # A CPU's memory already holds the program, for which a plan sets the reserve aside.
    spare = (1 - assume.memory_share) * room.total + assume.reserve_gib * GIB
    spare = spare if room.accelerator else (1 - assume.memory_share) * room.free
    weights, each = dtype.itemsize * sizes.parameters, token_bytes(model, dtype)
    left = int(room.free - weights - coming - spare)
    longest = int(options.get("max_model_len") or model.get_text_config().max_position_embeddings)
    rows = int(options.get("max_rows") or config.rollout.max_in_flight)
    needed = _needed(rows, longest) * each
    size, because = min(
        (left, "what is left"),
        (needed, f"what {rows} conversations of {longest} tokens need"),
        *(() if room.accelerator else ((MOST_ON_A_CPU, "the most on a CPU, without engine.kv_cache_gib"),)),
    )
    sum_of_it = (
        f"{room.free / GIB:.2f} GiB are free, of which {weights / GIB:.2f} go to its weights, {coming / GIB:.2f} to "
        f"{what}, and {spare / GIB:.2f} are left alone"
    )
    if size < _needed(1, longest) * each:
        raise ConfigurationError(
            f"The cache of vLLM would have {max(0, size) / GIB:.2f} GiB ({because}), and one conversation of {longest} "
            f"tokens takes {_needed(1, longest) * each / GIB:.2f}: {sum_of_it}. Lower engine.max_model_len or "
            "optim.tokens_per_device, "
            + ("" if options.get("sleep") or not room.accelerator else "set engine.sleep=true, ")
            + "train adapters (model.lora_rank), divide the weights among more devices (run.sharding=fsdp2), or set "
            "engine.kv_cache_gib yourself.",
            option="rollout.engine_options",
        )
    return Cache(size, f"The cache of vLLM has {size / GIB:.2f} GiB, {size // each:,} tokens, {because}: {sum_of_it}.")


def _coming(sizes: Architecture, how: Training, *, asleep: bool) -> tuple[int, str]:
    """Bytes that training is going to allocate beside the engine, and what they are for."""
    memory = training_memory(sizes, how)
    if asleep:
        return memory["optimizer"], "the optimizer's state"
    placed = set(RESIDENT) - {"optimizer"}
    return sum(number for name, number in memory.items() if name not in placed), "what training allocates"


def _needed(rows: int, longest: int) -> int:
    """Tokens of the blocks that so many conversations fill; vLLM keeps one block for itself."""
    return (rows * -(-longest // _BLOCK) + 1) * _BLOCK
