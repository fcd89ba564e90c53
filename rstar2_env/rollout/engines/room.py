"""Measures the memory available to a key-value cache: free bytes of a device, and cache bytes per token."""

from __future__ import annotations

import os
from pathlib import Path

import torch
from transformers import PreTrainedConfig

MOST_TOKENS = 1 << 20
"""Maximum number of tokens in a key-value cache, even if more memory is free."""

_CGROUP = Path("/sys/fs/cgroup")


def free_bytes(device: torch.device) -> int:
    """Return the bytes that this process may still allocate on a device; for a CPU, within the limit of its cgroup."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        # Memory that torch has reserved but does not use is available for the cache too.
        return int(free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device))
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for line in _lines(Path("/proc/meminfo")):
        if line.startswith("MemAvailable:"):
            free = int(line.split()[1]) * 1024
    limit, used = _lines(_CGROUP / "memory.max"), _lines(_CGROUP / "memory.current")
    if limit and used and limit[0].isdigit():
        free = min(free, max(0, int(limit[0]) - int(used[0])))
    return free


def total_bytes(device: torch.device) -> int:
    """Return the total bytes of a device's memory; for a CPU, of the machine's memory."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[1])
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def token_bytes(config: PreTrainedConfig, dtype: torch.dtype) -> int:
    """Return the bytes of the keys and values of one token, over all layers."""
    text = config.get_text_config()
    heads: int = getattr(text, "num_key_value_heads", None) or text.num_attention_heads
    size: int = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    return 2 * int(text.num_hidden_layers) * heads * size * dtype.itemsize


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text().splitlines()
    except OSError:
        return []
