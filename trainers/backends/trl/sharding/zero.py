"""Configure accelerate for DeepSpeed's ZeRO-2 and ZeRO-3, so that a run needs no option except ``run.sharding``.

On a CPU, DeepSpeed runs over gloo and takes the same optimizer steps as a run without DeepSpeed. In bfloat16, it holds
the weights in bfloat16, with partitioned float32 copies. Not covered: offloading to host memory and disks, which a
configuration of accelerate can request.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Any

import torch
from accelerate import PartialState
from accelerate.state import AcceleratorState

from rstar2_env.core.errors import MissingExtraError

from .choice import Sharding

_CONFIGURED = "ACCELERATE_USE_DEEPSPEED"


def zero_arguments(sharding: Sharding, processes: int) -> dict[str, Any]:
    """Return fields of transformers' ``TrainingArguments`` for a run with this sharding; empty without ZeRO.

    Args:
        sharding: The sharding of the weights and the optimizer state.
        processes: Number of processes; a single process does not use DeepSpeed, since it has nothing to divide.

    Raises:
        MissingExtraError: DeepSpeed is not installed.
    """
    if sharding not in ("zero2", "zero3") or processes == 1:
        return {}
    if find_spec("deepspeed") is None:
        raise MissingExtraError("deepspeed", f"sharding={sharding!r}")
    options: dict[str, Any] = {"use_cpu": False}  # otherwise accelerate would not use DeepSpeed
    if os.environ.get(_CONFIGURED, "false").lower() != "true":
        options["deepspeed"] = _configuration(int(sharding[-1]))
    if not torch.cuda.is_available():
        _connect_on_cpu()
        options["accelerator_config"] = {"use_configured_state": True}
    return options


def without_compiling() -> None:
    """Prevent DeepSpeed on a CPU from compiling its own transport, which takes minutes; gloo is used instead.

    A process that is killed while it compiles leaves a lock file; every later process would wait for this lock forever.
    """
    if os.environ.get(_CONFIGURED, "false").lower() == "true" and find_spec("deepspeed") is not None:
        import deepspeed

        deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False


def _connect_on_cpu() -> None:
    """Connect the processes for DeepSpeed on a CPU, where accelerate needs an explicit backend."""
    configured = os.environ.get(_CONFIGURED)
    os.environ |= {_CONFIGURED: "true", "DS_ACCELERATOR": "cpu"}
    try:
        without_compiling()
        AcceleratorState._reset_state(reset_partial_state=True)
        PartialState(backend="gloo")
    finally:
        if configured is None:
            del os.environ[_CONFIGURED]


def _configuration(stage: int) -> dict[str, Any]:
    return {
        "zero_optimization": {
            "stage": stage,
            "overlap_comm": torch.cuda.is_available(),
            # "auto" uses the model's size; the stage3 options only affect ZeRO-3.
            "reduce_bucket_size": "auto",
            "stage3_prefetch_bucket_size": "auto",
            "stage3_param_persistence_threshold": "auto",
            "stage3_gather_16bit_weights_on_model_save": False,  # exports are gathered tensor by tensor
        },
        "bf16": {"enabled": "auto"},
        "fp16": {"enabled": "auto"},
        "gradient_clipping": "auto",
        "gradient_accumulation_steps": "auto",
        "train_micro_batch_size_per_gpu": "auto",
        # The run's own optimizer steps on ZeRO's flat partitions of the weights.
        "zero_allow_untested_optimizer": True,
        "steps_per_print": 10**9,
    }
