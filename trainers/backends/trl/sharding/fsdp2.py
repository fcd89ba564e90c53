"""FSDP2: weights, gradients and the optimizer's state divided among the processes, by torch's ``fully_shard``.

The same on every device: NCCL and RCCL on accelerators, gloo on a CPU. Each transformer layer is a unit, which is
gathered for its own forward and backward pass alone; so are input embeddings of their own. What is left (the last norm,
the head, embeddings that are tied to it) belongs to the whole model, and stays gathered from its forward to its
backward pass: the fused head reads the weight of the head without calling it. Not covered: two levels of sharding
(HSDP), weights in host memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor

from rstar2_env.core.errors import ConfigurationError

from ..adapters import base_of


def shard(policy: nn.Module, device: torch.device, compute: torch.dtype, *, trained: bool = True) -> None:
    """Divide a policy among all processes, in place; its parameters become ``DTensor``.

    Args:
        policy: The same on every process, on any device; on all processes but the first, its weights may be on the
            device "meta", and are then those of the first, which sends one unit after the other.
        device: Where its shards go.
        compute: Precision of the forward and backward pass; gradients are averaged in float32.
        trained: Whether it is trained; the weights of a model that is not stay in the precision that they have.

    Raises:
        ConfigurationError: The model does not say what its layers are.
    """
    base = base_of(policy)
    mesh = init_device_mesh(device.type, (torch.distributed.get_world_size(),))
    mixed = MixedPrecisionPolicy() if compute is torch.float32 else MixedPrecisionPolicy(compute, torch.float32)
    if trained:
        for weights in policy.parameters():
            # Small updates are lost to rounding in a lower precision.
            if weights.requires_grad and weights.is_floating_point():
                weights.data = weights.data.float()
    awaited = _some_await(policy, device)
    for unit in (*_units(base), policy):
        if awaited:
            _share(unit, device)
        fully_shard(unit, mesh=mesh, mp_policy=mixed)


def is_sharded(module: nn.Module) -> bool:
    """Whether ``shard`` divided this module."""
    return isinstance(module, FSDPModule)


@torch.no_grad()
def hold(module: nn.Module) -> None:
    """Gather all weights and keep them, until ``release``; every process calls it.

    Forward passes without gradients then need no other process. Does nothing for a module that is not sharded.
    """
    if not isinstance(module, FSDPModule):
        return
    module.set_reshard_after_forward(False)
    # Without a collective call of its own for each unit: the forward pass of one token gathers them all.
    module(input_ids=torch.zeros(1, 1, dtype=torch.long, device=_device(module)), use_cache=False)


def release(module: nn.Module) -> None:
    """Give up the gathered weights, so that its parameters are ``DTensor`` again; as ``hold``."""
    if not isinstance(module, FSDPModule):
        return
    for unit in module.modules():
        if isinstance(unit, FSDPModule):
            unit.reshard()
    module.set_reshard_after_forward(True)
    # Gathered once for forward and backward pass, as is torch's own default.
    module.set_reshard_after_forward(False, recurse=False)


@contextmanager
def held(module: nn.Module) -> Iterator[None]:
    """Hold the weights while this lasts."""
    hold(module)
    try:
        yield
    finally:
        release(module)


def _some_await(policy: nn.Module, device: torch.device) -> bool:
    """Whether some process has no weights yet; every process calls it."""
    number = torch.tensor(float(any(one.is_meta for one in policy.parameters())), device=device)
    torch.distributed.all_reduce(number, torch.distributed.ReduceOp.MAX)
    return bool(number)


@torch.no_grad()
def _share(unit: nn.Module, device: torch.device) -> None:
    """Give every process the first one's weights and buffers of a unit, whole; those that are divided have theirs."""
    got: dict[int, tuple[Any, Any]] = {}  # what was, and what is; tied weights are one
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
    """What is gathered alone: the transformer layers, and input embeddings that are not tied to the head."""
    kinds = set(getattr(base, "_no_split_modules", None) or ())
    layers = [part for part in base.modules() if type(part).__name__ in kinds]
    if not layers:
        raise ConfigurationError(
            f"{type(base).__name__} does not say what its layers are (_no_split_modules), so it cannot be sharded: use "
            'sharding="zero2" or "zero3".'
        )
    model: Any = base
    first, last = model.get_input_embeddings(), model.get_output_embeddings()
    tied = last is None or first.weight is last.weight
    return layers if tied else [first, *layers]


def _device(module: nn.Module) -> torch.device:
    return next(module.parameters()).device
