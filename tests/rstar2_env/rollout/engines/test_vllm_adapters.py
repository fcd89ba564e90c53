"""vLLM in process with a policy of LoRA adapters: it has the merged weights from the start, and after every update."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from tiny_models import fresh_logprobs
from transformers import AutoModelForCausalLM
from vllm_serve import needs_vllm

from rstar2_env.rollout import Generation, SamplingParams, VllmEngine

pytestmark = pytest.mark.slow

PROMPT = [7, 20, 33, 41, 58]


@pytest.fixture(scope="module")
def policy(policy_folder: Path) -> PeftModel:
    base = AutoModelForCausalLM.from_pretrained(str(policy_folder), dtype=torch.float32)
    torch.manual_seed(0)
    return get_peft_model(base, LoraConfig(r=4, lora_alpha=8, target_modules="all-linear", init_lora_weights=False))


@pytest.fixture(scope="module")
def engine(policy: PeftModel) -> Iterator[VllmEngine]:
    needs_vllm()
    engine = VllmEngine(policy, dtype="float32", kv_cache_gib=0.0625, max_model_len=256)
    yield engine
    engine.close()


def drawn(engine: VllmEngine) -> Generation:
    return asyncio.run(asyncio.wait_for(engine.generate(PROMPT, SamplingParams(24, seed=3)), 120))


def test_it_computes_what_the_policy_with_its_adapters_computes(engine: VllmEngine, policy: PeftModel) -> None:
    before = drawn(engine)
    expected = fresh_logprobs(policy.eval(), PROMPT, before.ids, 1.0)
    torch.testing.assert_close(torch.tensor(before.logprobs), expected, rtol=0, atol=1e-3)
    with policy.disable_adapter():
        assert (fresh_logprobs(policy, PROMPT, before.ids, 1.0) - expected).abs().mean() > 0.1

    with torch.no_grad():
        for name, weights in policy.named_parameters():
            if "lora_B" in name:
                weights.mul_(-1.5)
    engine.update_weights(1, policy)
    after = drawn(engine)
    assert after.policy_version == 1
    moved = fresh_logprobs(policy, PROMPT, after.ids, 1.0)
    torch.testing.assert_close(torch.tensor(after.logprobs), moved, rtol=0, atol=1e-3)
    assert (fresh_logprobs(policy, PROMPT, before.ids, 1.0) - expected).abs().mean() > 0.1
