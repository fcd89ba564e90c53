"""Tiny models with random weights, and what is asked of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from rstar2_env.rollout import Generation, SamplingParams, TransformersEngine

VOCABULARY = 60
GREEDY = SamplingParams(max_tokens=12, temperature=0.0)


def tiny_qwen3(**options: Any) -> PreTrainedModel:
    """Every layer attends to everything; grouped keys and values."""
    return _make(Qwen3ForCausalLM, Qwen3Config, **({"head_dim": 16} | options))


def tiny_qwen2(**options: Any) -> PreTrainedModel:
    """Like Llama's, with biases on queries, keys and values."""
    return _make(Qwen2ForCausalLM, Qwen2Config, **options)


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


def prompts(count: int, longest: int = 30, seed: int = 0) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    return [[int(i) for i in rng.integers(3, VOCABULARY, size=rng.integers(1, longest))] for _ in range(count)]


def run_all(engine: TransformersEngine, jobs: Sequence[tuple[list[int], SamplingParams]]) -> list[Generation]:
    """Every job at once, in a loop of its own."""

    async def every() -> list[Generation]:
        return list(await asyncio.gather(*(engine.generate(ids, params) for ids, params in jobs)))

    return asyncio.run(asyncio.wait_for(every(), 120))


def alone(model: PreTrainedModel, prompt: list[int], new: int) -> list[int]:
    """What ``model.generate`` writes greedily after one prompt."""
    ids = torch.tensor([prompt])
    out = model.generate(
        ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=new, min_new_tokens=new
    )
    return [int(i) for i in out[0, len(prompt) :]]


def fresh_logprobs(model: PreTrainedModel, prompt: list[int], ids: list[int], temperature: float) -> torch.Tensor:
    """Log-probabilities of ``ids`` by one forward pass over everything."""
    with torch.no_grad():
        logits = model(torch.tensor([prompt + ids])).logits[0, len(prompt) - 1 : -1]
    return (logits.float() / temperature).log_softmax(-1).gather(1, torch.tensor(ids)[:, None])[:, 0]
