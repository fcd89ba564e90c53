"""Tiny models with random weights."""

from __future__ import annotations

from typing import Any

import torch
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    Qwen3Config,
    Qwen3ForCausalLM,
)

VOCABULARY = 60


def tiny_qwen3(**options: Any) -> PreTrainedModel:
    """Every layer attends to everything; grouped keys and values."""
    return _make(Qwen3ForCausalLM, Qwen3Config, head_dim=16, **options)


def tiny_llama(**options: Any) -> PreTrainedModel:
    """Like Qwen3's, without norms of queries and keys."""
    return _make(LlamaForCausalLM, LlamaConfig, **options)


def tiny_gemma3(**options: Any) -> PreTrainedModel:
    """Sliding windows of eight tokens in all but every second layer."""
    sliding = {"sliding_window": 8, "layer_types": ["sliding_attention", "full_attention"], "head_dim": 16}
    return _make(Gemma3ForCausalLM, Gemma3TextConfig, **(sliding | options))


def _make(kind: Any, config: Any, **options: Any) -> PreTrainedModel:
    torch.manual_seed(0)
    shape = {
        "vocab_size": VOCABULARY,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 512,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": None,
    }
    model: PreTrainedModel = kind(config(**(shape | options))).eval()
    # Initial weights are so small that every next token is about as likely; larger ones make a policy of opinions.
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(6)
    return model
