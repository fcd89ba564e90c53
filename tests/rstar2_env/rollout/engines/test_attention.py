"""Reading the cache without copies gives what transformers' own attention gives, and leaves the module as it was."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tiny_models import alone, prompts, run_all, tiny_gemma3, tiny_qwen3
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from rstar2_env.rollout import SamplingParams, TransformersEngine
from rstar2_env.rollout.engines import attention as attention_module
from rstar2_env.rollout.engines.attention import NAME, can_group, grouped_attention


@pytest.mark.parametrize("tokens", [1, 5])
@pytest.mark.parametrize("heads", [2, 6])
@pytest.mark.parametrize("masked", [True, False])
def test_it_is_the_same_attention(tokens: int, heads: int, masked: bool) -> None:
    torch.manual_seed(0)
    query, key, value = torch.randn(3, heads, tokens, 8), torch.randn(3, 2, 9, 8), torch.randn(3, 2, 9, 8)
    mask = torch.ones(3, 1, tokens, 9, dtype=torch.bool).tril(9 - tokens) if masked else None
    if mask is not None:
        mask[1, :, :, :3] = False
    module: Any = SimpleNamespace(num_key_value_groups=heads // 2, is_causal=True)
    ours, _ = grouped_attention(module, query, key, value, mask, scaling=0.3)
    theirs, _ = sdpa_attention_forward(module, query, key, value, mask, scaling=0.3)
    assert ours.shape == theirs.shape
    assert torch.allclose(ours, theirs, atol=1e-5)


def test_a_module_is_switched_while_the_engine_computes_and_back_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny_qwen3()
    used: list[int] = []

    def watched(*args: Any, **kwargs: Any) -> Any:
        used.append(1)
        return real(*args, **kwargs)

    real = attention_module.scaled_dot_product_attention
    monkeypatch.setattr(attention_module, "scaled_dot_product_attention", watched)
    engine = TransformersEngine(model)
    prompt = prompts(1)[0]
    generation = run_all(engine, [(prompt, SamplingParams(8, temperature=0.0))])[0]
    engine.close()
    assert len(used) == 7 * model.config.num_hidden_layers
    assert model.config._attn_implementation == "sdpa"
    assert generation.ids == alone(model, prompt, 8)
    assert len(used) == 7 * model.config.num_hidden_layers


def test_other_attention_is_left_alone() -> None:
    assert can_group(tiny_qwen3())
    assert can_group(tiny_gemma3())
    eager = tiny_qwen3(attn_implementation="eager")
    assert not can_group(eager)
    engine = TransformersEngine(eager)
    run_all(engine, [([5, 6], SamplingParams(3))])
    engine.close()
    assert eager.config._attn_implementation == "eager" != NAME
