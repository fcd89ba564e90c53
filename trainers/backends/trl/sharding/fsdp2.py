"""FSDP2: weights, gradients and optimizer state sharded over the processes by torch's ``fully_shard``.

The processes communicate by NCCL or RCCL on accelerators, and by gloo on a CPU. Each transformer layer is a unit that
is gathered only for its own forward and backward pass; input embeddings that are not tied to the head are another such
unit. The remaining weights (the last norm, the head, tied embeddings) belong to the whole model and stay gathered from
its forward to its backward pass, since the fused head reads the head's weight without calling the head. Not covered:
two levels of sharding (HSDP), weights in host memory.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor

from rstar2_env.core.errors import ConfigurationError

from ..adapters import base_of


def shard(policy: nn.Module, device: torch.device, compute: torch.dtype, *, trained: bool = True) -> None:
    """Shard a policy over all processes, in place; its parameters become ``DTensor``.

    Args:
        policy: The same model on every process, on any device. On processes other than the first, its weights may be on
            the device "meta"; the first process then sends them its weights, unit by unit.
        device: Device of the shards.
        compute: Precision of the forward and backward pass; gradients are averaged in float32.
        trained: Whether the policy is trained, so that its trainable weights become float32; otherwise all weights keep
            their precision.

    Raises:
        ConfigurationError: The model does not name its layer classes.
    """
    base = base_of(policy)
    mesh = init_device_mesh(device.type, (torch.distributed.get_world_size(),))
    mixed = MixedPrecisionPolicy() if compute is torch.float32 else MixedPrecisionPolicy(compute, torch.float32)
    if trained:
        for weights in policy.parameters():
            # In a lower precision, small updates would be lost to rounding.
            if weights.requires_grad and weights.is_floating_point():
                weights.data = weights.data.float()
    awaited = _some_await(policy, device)
    for unit in (*_units(base), policy):
        if awaited:
            _share(unit, device)
        fully_shard(unit, mesh=mesh, mp_policy=mixed)


@torch.no_grad()
def hold(module: nn.Module) -> None:
    """Gather all weights and keep them until ``release``; every process calls it.

    Forward passes without gradients are then local. Does nothing for a module that is not sharded.
    """
    if not isinstance(module, FSDPModule):
        return
    module.set_reshard_after_forward(False)
    # A forward pass over one token gathers every unit; no explicit call for each unit is needed.
    module(input_ids=torch.zeros(1, 1, dtype=torch.long, device=_device(module)), use_cache=False)


def release(module: nn.Module) -> None:
    """Free the gathered weights, so that the parameters are ``DTensor`` again; the inverse of ``hold``."""
    if not isinstance(module, FSDPModule):
        return
    for unit in module.modules():
        if isinstance(unit, FSDPModule):
            unit.reshard()
    module.set_reshard_after_forward(True)
    # The root is gathered once for forward and backward pass, as by torch's default.
    module.set_reshard_after_forward(False, recurse=False)


def _some_await(policy: nn.Module, device: torch.device) -> bool:
    """Return whether any process has no weights yet; every process calls it."""
    number = torch.tensor(float(any(one.is_meta for one in policy.parameters())), device=device)
    torch.distributed.all_reduce(number, torch.distributed.ReduceOp.MAX)
    return bool(number)


@torch.no_grad()
def _share(unit: nn.Module, device: torch.device) -> None:
    """Broadcast the unsharded weights and buffers of a unit from the first process."""
    got: dict[int, tuple[Any, Any]] = {}  # the old and the new tensor by the old one's id, so that weights stay tied
    for module in unit.modules():
        for held in (module._parameters, module._buffers):
            for name, value in held.items():
                if value is None or isinstance(value, DTensor):
                    continue
                if id(value) not in got:
                    whole = torch.empty_like(value, device=device) if value.is_meta else value.detach().to(device)
                    torch.distributed.broadcast(whole, src=0)
                    trained = nn.Parameter(whole, requires_grad=value.requires_grad)
                    got[id(value)] = value, trained if isinstance(value, nn.Parameter) else whole
                held[name] = got[id(value)][1]


def _units(base: nn.Module) -> list[nn.Module]:
    """Return the units that are gathered separately: transformer layers, and input embeddings not tied to the head."""
    kinds = set(getattr(base, "_no_split_modules", None) or ())
    layers = [part for part in base.modules() if type(part).__name__ in kinds]
    if not layers:
        raise ConfigurationError(
            f"{type(base).__name__} does not name the classes of its layers (_no_split_modules), so FSDP2 "
            'cannot divide it among processes: use sharding="zero2" or "zero3".'
        )
    model: Any = base
    first, last = model.get_input_embeddings(), model.get_output_embeddings()
    tied = last is None or first.weight is last.weight
    return layers if tied else [first, *layers]


def _device(module: nn.Module) -> torch.device:
    return next(module.parameters()).device
