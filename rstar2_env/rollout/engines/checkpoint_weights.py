"""Converts a module's weights to the layout of a checkpoint, for engines that have their own copy of the weights.

The weights are produced layer by layer, so merging and converting them needs the memory of one layer, not of a second
model. Covered: plain modules, modules with a layout other than their checkpoint's (transformers' own conversions, as
for mixtures of experts), LoRA adapters of peft (merged into copies, without changing the module). Modules whose weights
are sharded over processes need a ``gather`` function, which the trainer provides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import groupby
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from transformers.core_model_loading import revert_weight_conversion

from rstar2_env.core.errors import ConfigurationError

Cast: TypeAlias = Callable[[str, Tensor], Tensor]
"""Function that takes a tensor's name in a ``state_dict`` and the tensor, and returns it in the desired precision."""

Gather: TypeAlias = Callable[[Mapping[str, Tensor], Cast], AbstractContextManager[dict[str, Tensor]]]
"""Context manager that gathers and casts the tensors of one layer; they are valid until the context ends."""


@torch.no_grad()
def checkpoint_weights(
    module: nn.Module, *, dtype: torch.dtype | None = None, gather: Gather | None = None
) -> Iterator[tuple[str, Tensor]]:
    """Yield the weights of a module, layer by layer, under the names that its checkpoint on disk uses.

    A tensor may be the module's own and is valid until the next item: copy it to keep it. Tied weights are yielded
    under each of their names.

    Args:
        module: The module, with or without adapters of peft.
        dtype: Precision of the parameters; ``None`` leaves them unchanged. Buffers are not cast.
        gather: Gathers the tensors of one layer; ``None`` if no tensor is sharded.

    Raises:
        NotImplementedError: The module has adapters that cannot be merged.
    """
    base = without_adapters(module)
    adapters = _adapters(base) if base is not module else {}
    kept = {name for name, _ in base.named_buffers(remove_duplicate=False)}

    def cast(name: str, tensor: Tensor) -> Tensor:
        # A layer with an adapter is merged in its own precision, and cast afterwards.
        merged = any(owner in adapters for owner in _owners(name))
        return tensor if dtype is None or merged or name in kept else tensor.to(dtype)

    state = {name: one for name, one in base.state_dict(keep_vars=True).items() if isinstance(one, Tensor)}
    units = set(_units(base, adapters))
    for _, names in groupby(state, key=lambda name: _unit_of(name, units)):
        of_unit = {name: state[name] for name in names}
        with _own(of_unit, cast) if gather is None else gather(of_unit, cast) as whole:
            merged = dict(_merged(base, whole, adapters, dtype)) if adapters else whole
            found = dict(revert_weight_conversion(base, merged))
            merged.clear()
            while found:
                name = next(iter(found))
                yield name, found.pop(name).detach()


def without_adapters(module: nn.Module) -> Any:
    """Return the base model below peft's adapters; a module without adapters is returned unchanged."""
    # A model without peft's wrapper may have an adapter configuration, but not this method.
    below: Any = getattr(module, "get_base_model", None)
    return module if below is None else below()


def _own(tensors: Mapping[str, Tensor], cast: Cast) -> AbstractContextManager[dict[str, Tensor]]:
    return nullcontext({name: cast(name, tensor) for name, tensor in tensors.items()})


def _adapters(base: nn.Module) -> dict[str, Any]:
    """Return the layers with LoRA adapters, by name."""
    from peft.tuners.lora import LoraLayer
    from peft.tuners.tuners_utils import BaseTunerLayer
    from peft.utils.other import AuxiliaryTrainingWrapper

    found: dict[str, Any] = {}
    for name, part in base.named_modules():
        if isinstance(part, LoraLayer) and not part.lora_variant and not any(part.lora_bias.values()):
            found[name] = part
        elif isinstance(part, BaseTunerLayer | AuxiliaryTrainingWrapper):
            raise NotImplementedError(
                f"{type(part).__name__} cannot be merged into the weights for an engine, because it is not a plain "
                "LoRA adapter: use LoRA without variants such as DoRA, without lora_bias and without modules_to_save."
            )
    return found


def _units(module: nn.Module, adapters: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield the names of modules that are converted one at a time: members of layer lists, and layers with adapters."""
    for name, child in module.named_children():
        at = f"{prefix}{name}"
        if isinstance(module, nn.ModuleList) or at in adapters:
            yield at
        else:
            yield from _units(child, adapters, f"{at}.")


def _owners(name: str) -> Iterator[str]:
    """Yield the names of the modules that contain a tensor, from the outermost."""
    words = name.split(".")
    return (".".join(words[:end]) for end in range(1, len(words)))


def _unit_of(name: str, units: set[str]) -> str:
    return next((owner for owner in _owners(name) if owner in units), name.rpartition(".")[0])


def _merged(
    base: nn.Module, whole: dict[str, Tensor], adapters: Mapping[str, Any], dtype: torch.dtype | None
) -> Iterator[tuple[str, Tensor]]:
    """Yield the weights in ``whole`` with adapters merged; the tensors are removed from ``whole`` one by one."""
    low_rank = {name: whole.pop(name) for name in list(whole) if ".lora_" in name}
    while whole:
        name = next(iter(whole))
        tensor = whole.pop(name)
        layer, _, kind = name.partition(".base_layer.")
        part = adapters.get(layer)
        if part is not None:
            for adapter in part.active_adapters if kind == "weight" else ():
                if adapter in part.lora_A and adapter not in part.merged_adapters:
                    with _holding(part, layer, low_rank):
                        tensor = part.get_delta_weight(adapter).to(tensor.dtype).add_(tensor)
            tensor = tensor if dtype is None else tensor.to(dtype)
        yield name.replace(".base_layer.", "."), tensor


@contextmanager
def _holding(part: nn.Module, at: str, tensors: Mapping[str, Tensor]) -> Iterator[None]:
    """In the ``with`` block, replace parameters of ``part``, sharded or not, by the given whole tensors.

    Args:
        part: The module.
        at: Name of the module, with which the names in ``tensors`` begin.
        tensors: New values by the full names of the parameters; a parameter without a new value is not replaced.
    """
    own: list[tuple[nn.Module, str, nn.Parameter]] = []
    for name, module in part.named_modules(prefix=at):
        for key, parameter in module.named_parameters(recurse=False):
            given = tensors.get(f"{name}.{key}", parameter)
            if given is not parameter:
                own.append((module, key, parameter))
                module._parameters[key] = nn.Parameter(given, requires_grad=False)
    try:
        yield
    finally:
        for module, key, parameter in own:
            module._parameters[key] = parameter


def named_weights(weights: Any) -> Iterator[tuple[str, Tensor]]:
    """Yield names and tensors from the argument ``weights`` of ``update_weights``: a module, a mapping or pairs."""
    if isinstance(weights, nn.Module):
        yield from checkpoint_weights(weights)
    else:
        yield from weights.items() if isinstance(weights, Mapping) else weights


def check_names(names: Set[str], expected: Set[str] | None) -> None:
    """Check that new weights have the same names as the previous weights.

    Args:
        names: Names of the new weights.
        expected: The previous names; ``None`` accepts any names.

    Raises:
        ConfigurationError: Names are missing or unknown.
    """
    if expected is not None and names != expected:
        odd = sorted(names ^ expected)
        raise ConfigurationError(
            f"The new weights do not match this model: {len(odd)} names are missing or unknown, for example "
            f"{odd[0]!r}. Pass all weights of the model's state_dict, under the same names."
        )
