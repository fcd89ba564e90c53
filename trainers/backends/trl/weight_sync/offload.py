"""``OffloadedState``: keeps the state of the optimizer in host memory while the engine plays.

An engine in the trainer's process and the optimizer need the device's memory at different times: the engine sleeps
during optimizer steps, and the optimizer does nothing during rollouts. Covered: torch's optimizers, whole or sharded by
FSDP2; a tensor moves only if it is on the same device as its weight. Not covered: weights and gradients, DeepSpeed
(with which no engine runs in the trainer's process), and quantized optimizers, whose states torch does not list.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor


class OffloadedState:
    """Moves the state of an optimizer to host memory and back.

    The tensors keep their identity, so the optimizer, and a checkpoint that is written meanwhile, see the same state.
    The host memory is allocated once and kept, since pinning memory takes longer than the copy.
    """

    def __init__(self) -> None:
        self._host: dict[tuple[int, str], Tensor] = {}
        self._away: list[tuple[Tensor, torch.device]] = []

    @torch.no_grad()
    def to_host(self, optimizer: Any) -> int:
        """Move the state to host memory, which frees its device memory for other tensors.

        Args:
            optimizer: The optimizer, unwrapped; ``None`` before training creates it.

        Returns:
            The number of bytes that were moved; 0 if the optimizer has no state yet, or if the state is already on the
            host.
        """
        if optimizer is None or self._away:
            return 0
        found = list(_on_device(optimizer))
        for key, local in found:
            self._buffer(key, local).copy_(local, non_blocking=True)
        _wait(local.device for _, local in found)
        for key, local in found:
            self._away.append((local, local.device))
            local.data = self._host[key]
        return sum(local.nbytes for _, local in found)

    @torch.no_grad()
    def to_device(self) -> int:
        """Move the state back to its devices, if it is on the host.

        Returns:
            The number of bytes that were moved.
        """
        moved, self._away = self._away, []
        for local, device in moved:
            local.data = torch.empty_like(local, device=device).copy_(local, non_blocking=True)
        _wait(device for _, device in moved)
        return sum(local.nbytes for local, _ in moved)

    def _buffer(self, key: tuple[int, str], local: Tensor) -> Tensor:
        """Return the host tensor that a tensor is copied to; it is allocated once and then reused."""
        kept = self._host.get(key)
        if kept is None or kept.shape != local.shape or kept.dtype != local.dtype:
            pinned = local.device.type == "cuda"
            kept = torch.empty(local.shape, dtype=local.dtype, device="cpu", pin_memory=pinned)
            self._host[key] = kept
        return kept


def _on_device(optimizer: Any) -> Iterator[tuple[tuple[int, str], Tensor]]:
    """Yield this process's state tensors that are on the device of their weights.

    The key of each tensor is the index of its weight and its name in the optimizer's state, such as ``exp_avg``.
    """
    every = (weights for group in optimizer.param_groups for weights in group["params"])
    for number, weights in enumerate(every):
        device = _local(weights).device
        for name, value in optimizer.state.get(weights, {}).items():
            if isinstance(value, Tensor) and (local := _local(value)).device == device:
                yield (number, name), local


def _local(value: Tensor) -> Tensor:
    """Return this process's part of a sharded tensor, or a whole tensor unchanged.

    Under ``no_grad``, the part is the stored tensor itself, not a view of it.
    """
    return value.to_local() if isinstance(value, DTensor) else value


def _wait(devices: Any) -> None:
    """Wait for the copies that accelerators make asynchronously."""
    for device in {device for device in devices if device.type == "cuda"}:
        torch.cuda.synchronize(device)
