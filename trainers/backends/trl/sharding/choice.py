"""Chooses the sharding of a run: from its options, otherwise from accelerate's configuration.

Covered: FSDP2, which this package applies itself (``fsdp2``), so that it works the same on every device, and
DeepSpeed's ZeRO-2 and ZeRO-3 as accelerate sets them up (``zero``). Not covered: FSDP1, tensor and pipeline
parallelism.
"""

from __future__ import annotations

import os
from typing import Any, cast

from rstar2_env.core.errors import ConfigurationError

from ....plan.training_memory import Sharding as Sharding

_FSDP, _DEEPSPEED = "ACCELERATE_USE_FSDP", "ACCELERATE_USE_DEEPSPEED"
"""Environment variables in which ``accelerate launch`` passes its configuration to its processes."""


def chosen_sharding(wanted: str | None, option: str = "run.sharding") -> Sharding:
    """Return the sharding of this run, and disable accelerate's own FSDP.

    accelerate wraps a model in FSDP only on accelerators, and silently uses plain data parallelism on a CPU. So
    accelerate's FSDP is disabled here, before a model is loaded, and ``fsdp2.shard`` does the sharding that
    accelerate's configuration requests.

    Args:
        wanted: The option's value; ``None`` follows accelerate's configuration.
        option: The option's name, for error messages.

    Raises:
        ConfigurationError: The option and accelerate's configuration contradict each other, or the configuration
            requests FSDP1 or weights in host memory.
    """
    configured = _configured(option)
    if wanted is not None and configured is not None and wanted != configured:
        raise ConfigurationError(
            f"{option} is {wanted!r}, but accelerate's configuration requests {configured}: remove one of them.",
            option=option,
        )
    os.environ[_FSDP] = "false"
    return cast(Sharding, wanted or configured or "none")


def _configured(option: str) -> Sharding | None:
    """Return the sharding in the configuration of ``accelerate launch``; ``None`` if there is none."""
    if _is_set(_FSDP):
        if os.environ.get("FSDP_VERSION", "1") != "2":
            raise ConfigurationError(
                "accelerate's configuration requests the first version of FSDP, which is not supported: "
                "set fsdp_version: 2 in it.",
                option=option,
            )
        if _is_set("FSDP_OFFLOAD_PARAMS"):
            raise ConfigurationError(
                "accelerate's configuration keeps weights in host memory (fsdp_offload_params), which is "
                "not supported with FSDP2: set fsdp_offload_params: false in it.",
                option=option,
            )
        return "fsdp2"
    if _is_set(_DEEPSPEED):
        # accelerate reads it again when the trainer is made; other choices depend on it before that.
        stage = _stage_of_deepspeed()
        return cast(Sharding, f"zero{stage}") if stage in (2, 3) else None
    return None


def _stage_of_deepspeed() -> int:
    from accelerate.utils import DeepSpeedPlugin

    return int(DeepSpeedPlugin().zero_stage)


def _is_set(name: str) -> bool:
    return os.environ.get(name, "false").lower() in ("1", "true", "yes")


def sharding_of(state: Any) -> Sharding:
    """Return the sharding that accelerate applies: DeepSpeed's, or none.

    Args:
        state: ``accelerate.state.AcceleratorState``, or an object with its attributes.
    """
    deepspeed = getattr(state, "deepspeed_plugin", None)
    stage = 0 if deepspeed is None else int(deepspeed.zero_stage)
    return cast(Sharding, f"zero{stage}") if stage in (2, 3) and state.num_processes > 1 else "none"


def check_engine(name: str, sharding: Sharding, *, shares_weights: bool) -> None:
    """Refuse an engine that cannot work with the sharding of the weights.

    Episodes of different processes have different numbers of turns, so an engine's forward pass must not wait for other
    processes. With FSDP2, the weights that an engine shares with the trainer are gathered before the rollout. ZeRO-3
    gathers them in every forward pass, in which each process waits for the others.

    Args:
        name: Name of the engine, for the error message.
        sharding: The sharding of the weights.
        shares_weights: Whether the engine computes with the trainer's own module.

    Raises:
        ConfigurationError: The engine would wait forever.
    """
    if shares_weights and sharding == "zero3":
        raise ConfigurationError(
            f"engine={name!r} computes with the trainer's weights, which ZeRO-3 gathers from all "
            "processes in every forward pass. The processes play different numbers of turns, so they "
            'would wait for each other forever. Use engine="vllm-server", or sharding="fsdp2" or '
            '"zero2".'
        )
