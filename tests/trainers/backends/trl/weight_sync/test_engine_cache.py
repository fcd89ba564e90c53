"""The cache of a vLLM in the trainer's process is what the device has left once training has its share."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Qwen3Config, Qwen3ForCausalLM

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.rollout.engines import room
from rstar2_env.trainers import TRAINERS
from rstar2_env.trainers.backends.trl.weight_sync.engine_cache import (
    CacheSize,
    DeviceMemory,
    cache_for_vllm,
    device_memory,
)
from rstar2_env.trainers.plan.architecture import MODELS
from rstar2_env.trainers.plan.assumptions import Assumptions
from rstar2_env.trainers.plan.placement import training_of
from rstar2_env.trainers.plan.training_memory import total, training_memory
from rstar2_env.trainers.plan.workload import Workload

pytestmark = pytest.mark.train

GIB = 1 << 30
MODEL = MODELS["qwen3-1.7b"]
EACH = 2 * 28 * 8 * 128 * 2
"""Bytes of a token in the cache, in bfloat16: keys and values of 28 layers, each of 8 heads of 128."""


@pytest.fixture(scope="module")
def policy() -> Any:
    with torch.device("meta"):
        return Qwen3ForCausalLM(
            Qwen3Config(
                hidden_size=2048,
                intermediate_size=6144,
                num_hidden_layers=28,
                num_attention_heads=16,
                num_key_value_heads=8,
                head_dim=128,
                vocab_size=151_936,
                max_position_embeddings=40_960,
                tie_word_embeddings=True,
            )
        )


def config(**options: Any) -> Any:
    given = {"model": "m", "dtype": "bfloat16", "max_in_flight": 4096, "max_episode_tokens": 4096}
    return TRAINERS.get("grpo_clip_higher").configure({**given, **options})


def chosen(
    policy: Any, device: DeviceMemory, *, processes: int = 1, sharding: Any = "none", **options: Any
) -> CacheSize:
    engine = {"dtype": "bfloat16", **options.pop("engine", {})}
    return cache_for_vllm(config(**options), policy, engine, device, processes=processes, sharding=sharding)


H100 = DeviceMemory(70 * GIB, 80 * GIB, accelerator=True)
SPARE = 0.08 * 80 * GIB + 4 * GIB


def test_an_engine_that_sleeps_leaves_room_for_the_optimizers_state(policy: Any) -> None:
    cache = chosen(policy, H100, offload_state=False, engine={"sleep": True})
    assert not cache.offloads
    # Two moments in float32 of each parameter, and the engine's own weights in bfloat16.
    assert cache.size == pytest.approx(70 * GIB - (8 + 2) * MODEL.parameters - SPARE, abs=8)
    assert "70.00 GiB of memory are free" in cache.why
    assert "the optimizer state" in cache.why
    assert "the remaining memory" in cache.why


def test_an_engine_that_stays_awake_leaves_room_for_gradients_and_activations_too(policy: Any) -> None:
    asleep = chosen(policy, H100, offload_state=False, engine={"sleep": True}).size
    awake = chosen(policy, H100).size
    how = training_of(MODEL, Workload.of(config()), 1, Assumptions(), accelerator=True)
    training = training_memory(MODEL, how)
    assert asleep is not None
    assert awake is not None
    assert asleep - awake == total(training) - training["weights"] - training["optimizer"]
    assert asleep - awake > 4 * MODEL.parameters


MANY = {"problems_per_step": 64, "group_size": 32}
"""A step of so many episodes that the cache beside the optimizer does not hold those in flight."""


def test_a_cache_that_would_be_too_small_gets_the_memory_of_the_optimizers_state(policy: Any) -> None:
    cache = chosen(policy, H100, engine={"sleep": True}, **MANY)
    assert cache.offloads
    assert cache.size == pytest.approx(70 * GIB - 2 * MODEL.parameters - SPARE, abs=8)
    assert "waits in host memory" in cache.why


def test_the_state_stays_where_it_is_if_the_cache_holds_the_episodes_in_flight_or_the_engine_stays_awake(
    policy: Any,
) -> None:
    few = {"problems_per_step": 2, "group_size": 4}
    assert not chosen(policy, H100, engine={"sleep": True}, **few).offloads
    assert not chosen(policy, H100, **MANY).offloads
    assert chosen(policy, H100, engine={"sleep": True}, offload_state=True, **few).offloads
    assert not chosen(policy, H100, engine={"sleep": True}, offload_state=False, **MANY).offloads


def test_processes_that_divide_the_optimizer_have_larger_caches(policy: Any) -> None:
    cache = chosen(policy, H100, processes=8, sharding="fsdp2", offload_state=False, engine={"sleep": True})
    assert cache.size == pytest.approx(70 * GIB - (8 / 8 + 2) * MODEL.parameters - SPARE, abs=8)


def test_a_cache_is_not_larger_than_what_is_in_flight_needs(policy: Any) -> None:
    cache = chosen(policy, H100, max_in_flight=3, engine={"sleep": True, "max_model_len": 200})
    assert cache.size == (3 * 256 + 128) * EACH, "whole blocks of 128 tokens, and one that vLLM keeps"
    assert "3 conversations of 200 tokens" in cache.why


def test_a_cache_in_the_machines_memory_is_bounded(policy: Any) -> None:
    cache = chosen(policy, DeviceMemory(200 * GIB, 256 * GIB, accelerator=False), engine={"max_model_len": 4096})
    assert cache.size == 4 * GIB
    assert "engine.kv_cache_gib" in cache.why


def test_without_room_for_one_conversation_the_options_are_named(policy: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"one conversation of 40960 tokens") as refused:
        chosen(policy, DeviceMemory(29 * GIB, 80 * GIB, accelerator=True))
    for option in ("max_model_len", "tokens_per_device", "sleep=true", "lora_rank", "fsdp2", "kv_cache_gib"):
        assert option in str(refused.value)
    assert chosen(policy, DeviceMemory(29 * GIB, 80 * GIB, accelerator=True), lora_rank=16, engine={"sleep": True}).size


def test_of_a_model_whose_sizes_are_not_known_vllm_decides() -> None:
    with torch.device("meta"):
        other = GPT2LMHeadModel(GPT2Config())
    cache = chosen(other, H100)
    assert cache.size is None
    assert "'gpt2'" in cache.why


def test_a_device_is_measured_with_what_torch_holds_unused(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = {"mem_get_info": (60 * GIB, 80 * GIB), "memory_reserved": 12 * GIB, "memory_allocated": 10 * GIB}
    cuda = SimpleNamespace(**{name: lambda device, value=value: value for name, value in memory.items()})
    monkeypatch.setattr(room, "torch", SimpleNamespace(cuda=cuda))
    found = device_memory(torch.device("cuda", 0), lambda own: [own, own - GIB])
    assert found == DeviceMemory(61 * GIB, 80 * GIB, accelerator=True), "the least of all processes"


def test_processes_of_one_machine_share_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    found = device_memory(torch.device("cpu"), lambda _: [8 * GIB])
    assert (found.free, found.accelerator) == (4 * GIB, False)
