"""What sharded weights allow an engine to do: weights whole in every process, gathered once a step, or for each layer.

Episodes of different processes take different numbers of turns, so an engine's forward pass may not wait for the other
processes. Covered: FSDP and DeepSpeed as accelerate sets them up. Not covered: tensor and pipeline parallelism.
"""

from __future__ import annotations

from typing import Any, Literal

from rstar2_env.core.errors import ConfigurationError

Sharding = Literal["whole", "gathered", "layer by layer"]
"""``whole``: each process has all weights (one process, DDP, ZeRO-1 and ZeRO-2). ``gathered``: the first forward pass
after an optimizer step waits for the other processes, and those after it do not (FSDP2 without resharding). ``layer by
layer``: every forward pass waits (FSDP1, FSDP2 with resharding, ZeRO-3)."""


def sharding_of(state: Any) -> Sharding:
    """How accelerate shards the weights.

    Args:
        state: ``accelerate.state.AcceleratorState``, or what has its attributes.
    """
    if state.num_processes == 1:
        return "whole"
    deepspeed = getattr(state, "deepspeed_plugin", None)
    if deepspeed is not None:
        return "layer by layer" if int(deepspeed.zero_stage) == 3 else "whole"
    fsdp = getattr(state, "fsdp_plugin", None)
    if fsdp is None:
        return "whole"
    kept = int(getattr(fsdp, "fsdp_version", 1)) == 2 and getattr(fsdp, "reshard_after_forward", True) is False
    return "gathered" if kept else "layer by layer"


def check_engine(name: str, sharding: Sharding, *, shares_weights: bool) -> None:
    """Refuse an engine that cannot work with weights that are sharded so.

    Args:
        name: The engine, for the message.
        sharding: How the weights are sharded.
        shares_weights: Whether the engine computes with the trainer's own module.

    Raises:
        ConfigurationError: It would wait forever, or has no whole weights to copy.
    """
    if not shares_weights and sharding != "whole":
        raise ConfigurationError(
            f"engine={name!r} needs the policy's weights in one process, but FSDP and DeepSpeed's ZeRO-3 shard them; "
            'use engine="transformers", plain data parallelism, or ZeRO-2.'
        )
    if shares_weights and sharding == "layer by layer":
        raise ConfigurationError(
            f"engine={name!r} computes with weights that every forward pass gathers from all processes, and processes "
            "play different numbers of turns: they would wait for each other forever. Use FSDP2 with "
            "fsdp_reshard_after_forward: false, or DeepSpeed with zero_stage: 2, as the files of configs/accelerate do."
        )
