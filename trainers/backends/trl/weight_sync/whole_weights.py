"""``whole_weights``: gathers a policy's weights, one layer at a time, with any sharding.

Covered: weights in one process, DTensors (FSDP2), DeepSpeed's ZeRO-3; LoRA adapters, which are merged layer by layer
into copies; transformers' conversions into the layout of a checkpoint. Not covered: FSDP1, the float32 master weights
that DeepSpeed keeps in addition to bf16 weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor

from rstar2_env.rollout.engines.checkpoint_weights import Cast, checkpoint_weights
from rstar2_env.rollout.engines.weight_transports.adapter import Adapter, adapter_state

from ..sharding.torch_state import whole


def is_sharded(module: nn.Module) -> bool:
    """Whether the weights of a module are sharded over processes, so that gathering them is collective."""
    return any(isinstance(part, FSDPModule) for part in module.modules()) or any(
        isinstance(one, DTensor) or hasattr(one, "ds_id") for one in module.parameters()
    )


def whole_weights(module: nn.Module, *, dtype: torch.dtype | None = None) -> Iterator[tuple[str, Tensor]]:
    """Yield the weights of a policy, each gathered whole, under the names that transformers gives them on disk.

    Gathering is collective: every process must consume every item together with the other processes, even if it does
    not need the item, and even after it had an error. Each process holds one layer at a time in addition to its own
    weights.

    Args:
        module: The policy, without the wrapper of DDP or DeepSpeed; with or without LoRA adapters, which are merged.
        dtype: Precision of the parameters; ``None`` leaves them unchanged. FSDP2's shards are cast before they are
            gathered. Buffers are not cast.

    Yields:
        A name and a tensor, which may be the module's own and is valid until the next item. Tied weights are yielded
        under each of their names.

    Raises:
        NotImplementedError: The module has adapters that cannot be merged.
    """
    yield from checkpoint_weights(module, dtype=dtype, gather=_gathered)


@torch.no_grad()
def whole_adapter(policy: Any, *, dtype: torch.dtype | None = None) -> Adapter:
    """Return the whole LoRA adapter of a policy; its tensors are gathered layer by layer, as in ``whole_weights``.

    Args:
        policy: A ``peft.PeftModel`` with one adapter, named ``default``.
        dtype: Precision of the adapter's tensors; ``None`` leaves them unchanged.
    """
    return Adapter(policy.peft_config["default"], _adapter_tensors(policy, dtype))


@torch.no_grad()
def _adapter_tensors(policy: Any, dtype: torch.dtype | None) -> Iterator[tuple[str, Tensor]]:
    def cast(name: str, tensor: Tensor) -> Tensor:
        return tensor if dtype is None else tensor.to(dtype)

    for name, tensor in adapter_state(policy).items():
        with _gathered({name: tensor}, cast) as gathered:
            yield name, gathered[name].detach()


@contextmanager
def _gathered(tensors: Mapping[str, Tensor], cast: Cast) -> Iterator[dict[str, Tensor]]:
    partitioned = [tensor for tensor in tensors.values() if hasattr(tensor, "ds_id")]
    if not partitioned:
        yield {name: whole(cast(name, tensor)) for name, tensor in tensors.items()}
        return
    from deepspeed.runtime.zero import GatheredParameters

    gathered: Any = GatheredParameters(partitioned)
    with gathered:
        yield {name: cast(name, tensor) for name, tensor in tensors.items()}
