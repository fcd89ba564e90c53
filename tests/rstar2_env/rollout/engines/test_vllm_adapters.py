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
"""A process has one vLLM engine: CI gives it adapters with an update, and a proof makes another engine with them."""

PROMPT = [7, 20, 33, 41, 58]


@pytest.fixture
def policy(policy_folder: Path) -> PeftModel:
    base = AutoModelForCausalLM.from_pretrained(str(policy_folder), dtype=torch.float32)
    torch.manual_seed(0)
    return get_peft_model(base, LoraConfig(r=4, lora_alpha=8, target_modules="all-linear", init_lora_weights=False))


@pytest.fixture
def engine(policy: PeftModel) -> Iterator[VllmEngine]:
    """An engine that is made with adapters."""
    needs_vllm()
    engine = VllmEngine(policy, dtype="float32", kv_cache_gib=0.0625, max_model_len=256)
    yield engine
    engine.close()


def drawn(engine: VllmEngine) -> Generation:
    return asyncio.run(asyncio.wait_for(engine.generate(PROMPT, SamplingParams(24, seed=3)), 120))


def moved(policy: PeftModel) -> None:
    """Change the adapters."""
    with torch.no_grad():
        for name, weights in policy.named_parameters():
            if "lora_B" in name:
                weights.mul_(-1.5)


def holds(engine: VllmEngine, policy: PeftModel, version: int) -> None:
    """The engine computes what the policy with its adapters computes, and not what the policy without them does."""
    found = drawn(engine)
    assert found.policy_version == version
    expected = fresh_logprobs(policy.eval(), PROMPT, found.ids, 1.0)
    torch.testing.assert_close(torch.tensor(found.logprobs), expected, rtol=0, atol=1e-3)
    with policy.disable_adapter():
        assert (fresh_logprobs(policy, PROMPT, found.ids, 1.0) - expected).abs().mean() > 0.1


@pytest.mark.usefixtures("first_weights")
def test_after_an_update_it_computes_with_the_adapters(vllm_engine: VllmEngine, policy: PeftModel) -> None:
    vllm_engine.update_weights(1, policy)
    holds(vllm_engine, policy, 1)
    before = drawn(vllm_engine)
    moved(policy)
    vllm_engine.update_weights(2, policy)
    holds(vllm_engine, policy, 2)
    then = fresh_logprobs(policy, PROMPT, before.ids, 1.0)
    assert (then - torch.tensor(before.logprobs)).abs().mean() > 0.1


@pytest.mark.proof
def test_it_is_made_with_the_adapters(engine: VllmEngine, policy: PeftModel) -> None:
    holds(engine, policy, 0)
    moved(policy)
    engine.update_weights(1, policy)
    holds(engine, policy, 1)
