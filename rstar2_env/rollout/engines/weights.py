"""A module's weights in the layout of a checkpoint, for an engine that has a copy of its own.

Covered: plain modules, modules whose checkpoints have another layout (transformers' own conversions, as for mixtures of
experts), LoRA adapters of peft (merged into copies, without changing the module). Not covered: modules whose weights
are sharded over processes (FSDP, ZeRO-3).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers.core_model_loading import revert_weight_conversion


@torch.no_grad()
def checkpoint_weights(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Names and weights of a module, with the names of its checkpoint on disk.

    The tensors may be the module's own: copy them to keep them.
    """
    base = without_adapters(module)
    state = module.state_dict() if base is module else dict(_merged(module))
    yield from dict(revert_weight_conversion(base, state)).items()


def without_adapters(module: nn.Module) -> Any:
    """The model below the adapters of peft, or the module itself if it has none."""
    # A model without peft's wrapper may have the configuration of adapters, but no such method.
    below: Any = getattr(module, "get_base_model", None)
    return module if below is None else below()


def _merged(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """The weights of the base model with the adapters added, layer by layer."""
    from peft.tuners.lora import LoraLayer
    from peft.tuners.tuners_utils import BaseTunerLayer
    from peft.utils.other import AuxiliaryTrainingWrapper

    deltas: dict[str, Tensor] = {}
    for name, part in module.named_modules():
        if isinstance(part, LoraLayer) and not part.lora_variant:
            for adapter in part.active_adapters:
                if adapter in part.lora_A:
                    delta = part.get_delta_weight(adapter)
                    deltas[name] = deltas[name] + delta if name in deltas else delta
        elif isinstance(part, BaseTunerLayer | AuxiliaryTrainingWrapper):
            raise NotImplementedError(f"{type(part).__name__}: only plain LoRA adapters can be merged for an engine.")
    prefix = "base_model.model."
    for name, tensor in module.state_dict().items():
        if ".lora_" in name or not name.startswith(prefix):
            continue
        layer, _, kind = name.partition(".base_layer.")
        if kind == "weight" and layer in deltas:
            tensor = tensor + deltas[layer].to(tensor.dtype)
        yield name.removeprefix(prefix).replace(".base_layer.", "."), tensor


def named_weights(weights: Any) -> Iterator[tuple[str, Tensor]]:
    """Names and tensors of an argument of ``update_weights``: a module, a mapping or an iterable of pairs."""
    if isinstance(weights, nn.Module):
        yield from checkpoint_weights(weights)
    else:
        yield from weights.items() if isinstance(weights, Mapping) else weights


def write_weights(weights: Any, folder: Path, *, shard_bytes: int = 4 << 30) -> None:
    """Write weights as safetensors files, for a program that reads checkpoints.

    Args:
        weights: A module, a mapping or an iterable of names and tensors.
        folder: Created if it does not exist.
        shard_bytes: Size, in bytes, above which a new file is started.
    """
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    shard: dict[str, Tensor] = {}
    size = number = 0
    seen: set[int] = set()
    for name, tensor in named_weights(weights):
        tensor = tensor.detach().contiguous()
        # Tied weights are one tensor with two names. A checkpoint has it once, but then vLLM on a CPU, which keeps a
        # packed copy for the second name, would continue with the old weights (seen with 0.32).
        shard[name] = tensor.clone() if tensor.data_ptr() in seen else tensor
        seen.add(tensor.data_ptr())
        size += tensor.nbytes
        if size >= shard_bytes:
            save_file(shard, str(folder / f"model-{number:05d}.safetensors"))
            shard, size, number = {}, 0, number + 1
    if shard:
        save_file(shard, str(folder / f"model-{number:05d}.safetensors"))
