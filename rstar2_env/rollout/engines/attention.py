"""Attention for single tokens that does not copy the cache for every query head.

Several query heads share one head of keys and values in most models. transformers copies keys and values for each of
them as soon as there is a mask, at every step and in every layer; that is most of what a step of a small model costs,
and most of the memory traffic of a large one. Here the query heads of a group stand beside each other, as if they were
several tokens, and the cache is read as it is. Covered: models that look their attention up by name and run with
``sdpa``; a module is switched while the engine computes with it, and back. Not covered: prompts, whose cost is
elsewhere, and models with parts of their own configuration (vision, audio).
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
    """As transformers' ``sdpa``, without copies where every row has one query.

    Args:
        module: The attention layer.
        query: (rows, query heads, tokens, head size).
        key: (rows, heads, cached tokens, head size).
        value: As ``key``.
        attention_mask: (rows, 1, tokens, cached tokens), or none.
        dropout: Not used in evaluation.
        scaling: Of the scores.
        **kwargs: What else the model passes.

    Returns:
        (rows, tokens, query heads, head size), and no weights.
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
    """Whether a model can be switched."""
    config = model.config
    looks_up = getattr(model, "_can_set_attn_implementation", None)
    return (
        config._attn_implementation == "sdpa"
        and config.get_text_config() is config
        and not config.sub_configs
        and looks_up is not None
        and bool(looks_up())
    )
