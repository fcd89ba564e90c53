"""A module's weights as a checkpoint would hold them, for an engine that has a copy of its own.

Covered: plain modules, modules whose weights a checkpoint holds in another layout (transformers' own conversions, as
for mixtures of experts), LoRA adapters of peft (merged on the way out, without touching the module). Not covered:
modules whose weights are spread over processes (FSDP, ZeRO-3).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from transformers.core_model_loading import revert_weight_conversion


@torch.no_grad()
def checkpoint_weights(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Names and weights of a module, under the names that its checkpoint on disk would have.

    The tensors may be the module's own: whoever keeps them must copy.
    """
    base: Any = module
    state = module.state_dict()
    if hasattr(module, "peft_config"):
        base = module.get_base_model()  # type: ignore[operator]  # peft's models have it; nn.Module does not say so
        state = dict(_merged(module))
    yield from dict(revert_weight_conversion(base, state)).items()


def _merged(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """The weights of the base model with the adapters added, layer by layer."""
    from peft.tuners.lora import LoraLayer
    from peft.tuners.tuners_utils import BaseTunerLayer

    deltas: dict[str, Tensor] = {}
    for name, part in module.named_modules():
        if isinstance(part, LoraLayer):
            for adapter in part.active_adapters:
                if adapter in part.lora_A:
                    delta = part.get_delta_weight(adapter)
                    deltas[name] = deltas[name] + delta if name in deltas else delta
        elif isinstance(part, BaseTunerLayer):
            raise NotImplementedError(f"{type(part).__name__}: only LoRA adapters can be handed to an engine.")
    prefix = "base_model.model."
    for name, tensor in module.state_dict().items():
        if ".lora_" in name or not name.startswith(prefix):
            continue
        layer, _, kind = name.partition(".base_layer.")
        if kind == "weight" and layer in deltas:
            tensor = tensor + deltas[layer].to(tensor.dtype)
        yield name.removeprefix(prefix).replace(".base_layer.", "."), tensor
