"""Compute the floating-point operations of training, the peak FLOP/s of devices (for the MFU), and peak memory."""

from __future__ import annotations

import resource
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from trl.trainer.utils import compute_flops_per_token, get_peak_flops

PEAKS = {
    # AMD's data sheets of the Instinct accelerators: peak dense matrix operations, by torch's device names. TRL's
    # table, which follows TorchTitan, covers NVIDIA devices.
    "MI300X": {torch.float16: 1307.4e12, torch.bfloat16: 1307.4e12, torch.float32: 163.4e12},
    "MI325X": {torch.float16: 1307.4e12, torch.bfloat16: 1307.4e12, torch.float32: 163.4e12},
    "MI355X": {torch.float16: 2516.6e12, torch.bfloat16: 2516.6e12, torch.float32: 157.3e12},
}
"""Peak operations per second, by device and precision, of devices that TRL's table lacks or lists only rounded."""


def peak(name: str, dtype: torch.dtype) -> float | None:
    """Return the peak performance of a device in FLOP/s, or ``None`` if it is unknown.

    Args:
        name: torch's name of the device.
        dtype: Precision of the matrix products.
    """
    for known, peaks in PEAKS.items():
        if known.casefold() in name.casefold():
            return peaks.get(dtype)
    found = get_peak_flops(name, str(dtype).removeprefix("torch."))
    return None if found is None else float(found)


def peak_memory() -> int:
    """Return this process's peak memory so far, in bytes: the accelerator's memory, or resident memory on a CPU."""
    if torch.cuda.is_available():
        return int(torch.cuda.max_memory_allocated())
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest if sys.platform == "darwin" else 1024 * largest


def peak_of(accelerator: Any) -> float | None:
    """Return the peak FLOP/s of a process's device at the training precision; ``None`` on a CPU, or if unknown."""
    if accelerator.device.type != "cuda":  # ROCm builds of torch use the same name
        return None
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(accelerator.mixed_precision, torch.float32)
    return _peak_of(accelerator.device, dtype)


@cache
def _peak_of(device: torch.device, dtype: torch.dtype) -> float | None:
    return peak(torch.cuda.get_device_name(device), dtype)


def flops_of(model: Any, lengths: Sequence[int]) -> float | None:
    """Return the floating-point operations of training on rows, not counting padding and recomputation.

    TRL counts the matrix products with weights, and attention over every pair of tokens. This function omits the half
    of attention that a causal model skips. With adapters the count is a third lower, since frozen weights have no
    gradient.

    Args:
        model: The policy.
        lengths: Number of tokens of each row.

    Returns:
        The number of operations; ``None`` for an architecture whose sizes TRL cannot read.
    """
    config = model.config.get_text_config()
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    pairs = 3 * 2 * config.num_hidden_layers * config.num_attention_heads * size
    try:
        total = sum(length * (compute_flops_per_token(config, length) - pairs * length) for length in lengths)
    except AttributeError:  # the configuration names its sizes differently
        return None
    return float(total) * (2 / 3 if hasattr(model, "peft_config") else 1.0)
