"""Attention over packed tokens gives what each sequence alone gives, and leaves the module as it was."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tiny_models import alone, prompts, run_all, tiny_gemma3, tiny_qwen3
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from rstar2_env.rollout import SamplingParams, TransformersEngine
from rstar2_env.rollout.engines import attention as attention_module
from rstar2_env.rollout.engines.attention import NAME, Pack, TokenRun, can_pack, packed, packed_attention

CPU = torch.device("cpu")


@pytest.mark.parametrize("heads", [2, 6])
@pytest.mark.parametrize("most_scores", [1 << 23, 40])
def test_every_token_attends_to_its_own_sequence_up_to_itself(
    heads: int, most_scores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention_module, "MOST_SCORES", most_scores)
    torch.manual_seed(0)
    cache = torch.randn(2, 5, 2, 20, 8)
    # Three rows with one token, and two pieces; the second piece begins its sequence.
    slots, positions = [0, 2, 3], [4, 11, 8]
    pieces = [TokenRun(1, 3, 7, 6), TokenRun(4, 10, 5, 0)]
    query = torch.randn(1, heads, 15, 8)
    with packed(tiny_qwen3(), Pack(slots, positions, pieces, CPU)):
        found, _ = packed_attention(torch.nn.Module(), query, cache[0], cache[1], None, scaling=0.3)
    assert found.shape == (1, 15, heads, 8)
    where = [*zip(slots, positions, strict=True), *((1, 6 + n) for n in range(7)), *((4, n) for n in range(5))]
    module: Any = SimpleNamespace(num_key_value_groups=heads // 2, is_causal=True)
    for token, (slot, position) in enumerate(where):
        key, value = (states[slot, :, : position + 1][None] for states in cache)
        expected, _ = sdpa_attention_forward(module, query[:, :, token : token + 1], key, value, None, scaling=0.3)
        assert torch.allclose(found[:, token : token + 1], expected, atol=1e-5)


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
    assert len(used) == 8 * model.config.num_hidden_layers
    assert model.config._attn_implementation == "sdpa" != NAME
    assert generation.ids == alone(model, prompt, 8)
    assert len(used) == 8 * model.config.num_hidden_layers


def test_other_attention_is_left_alone() -> None:
    assert can_pack(tiny_qwen3())
    assert not can_pack(tiny_qwen3(attn_logit_softcapping=30.0))
    assert can_pack(tiny_gemma3())
    eager = tiny_qwen3(attn_implementation="eager")
    assert not can_pack(eager)
    engine = TransformersEngine(eager)
    prompt = prompts(1)[0]
    assert run_all(engine, [(prompt, SamplingParams(8, temperature=0.0))])[0].ids == alone(eager, prompt, 8)
    engine.close()
    assert eager.config._attn_implementation == "eager"
