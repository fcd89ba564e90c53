"""Attention for single tokens that does not copy the cache for every query head.

In most models several query heads share one head of keys and values (grouped-query attention). With a mask,
transformers copies keys and values for each query head, at every step and in every layer; that is most of the cost of a
step of a small model, and most of the memory traffic of a large one. Here the query heads of a group are arranged as if
they were several tokens, and the cache is read in place. Covered: models that look up their attention by name and run
with ``sdpa``; a module is switched while the engine computes with it, and switched back. Not covered: prompts, whose
cost is elsewhere, and models whose parts have configurations of their own (vision, audio).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

NAME = "rstar2_grouped"


def grouped_attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """The same as transformers' ``sdpa``, without copies when every row has one query token.

    Args:
        module: The attention layer.
        query: (rows, query heads, tokens, head size).
        key: (rows, heads, cached tokens, head size).
        value: As ``key``.
        attention_mask: (rows, 1, tokens, cached tokens), or ``None``.
        dropout: Not used in evaluation.
        scaling: Factor of the attention scores; ``None`` means one over the square root of the head size.
        **kwargs: Further arguments of the model.

    Returns:
        The output, (rows, tokens, query heads, head size), and ``None`` in place of attention weights.
    """
    rows, heads, tokens, size = query.shape
    plain = attention_mask is None or attention_mask.shape[1:3] == (1, 1)
    if tokens != 1 or heads == key.shape[1] or dropout or not plain or kwargs.get("position_bias") is not None:
        output: tuple[Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **kwargs
        )
        return output
    grouped = query.reshape(rows, key.shape[1], heads // key.shape[1], size)
    found = scaled_dot_product_attention(grouped, key, value, attn_mask=attention_mask, scale=scaling)
    return found.reshape(rows, 1, heads, value.shape[-1]), None


AttentionInterface.register(NAME, grouped_attention)
AttentionMaskInterface.register(NAME, sdpa_mask)


def can_group(model: PreTrainedModel) -> bool:
    """Whether a model can run with ``grouped_attention``."""
    config = model.config
    looks_up = getattr(model, "_can_set_attn_implementation", None)
    return (
        config._attn_implementation == "sdpa"
        and config.get_text_config() is config
        and not config.sub_configs
        and looks_up is not None
        and bool(looks_up())
    )
