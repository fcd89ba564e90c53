"""``cache_argument``: names the argument of a model's forward pass that takes the cache of keys and values.

transformers 5.24 renamed ``past_key_values`` to ``cache``, and removes the old name in 5.40; a model whose class is not
part of transformers may still have the old one.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import torch


def cache_argument(model: torch.nn.Module) -> Literal["cache", "past_key_values"]:
    """Return the name of the argument of ``model.forward`` that takes the cache.

    Args:
        model: A causal language model, or a wrapper of one, such as an adapter. Since the signature of a wrapper does
            not name the argument, the signature of the wrapped module is read.
    """
    for module in model.modules():
        arguments = inspect.signature(module.forward).parameters
        if "cache" in arguments:
            return "cache"
        if "past_key_values" in arguments:
            break
    return "past_key_values"
