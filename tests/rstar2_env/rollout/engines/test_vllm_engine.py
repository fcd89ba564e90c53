"""vLLM in process beyond the protocol: a small cache, what it leaves of this process, and how it is refused."""

from __future__ import annotations

import asyncio
import contextlib
import math
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
import torch
from tiny_models import alone
from transformers import PreTrainedModel
from vllm_serve import BLOCK, BLOCKS, needs_vllm, policy_model

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.rollout import Generation, SamplingParams, VllmEngine
from rstar2_env.rollout.engines.vllm_engine import _Request, _result

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def model(policy_folder: Path) -> PreTrainedModel:
    model: PreTrainedModel = policy_model(policy_folder)
    return model


@pytest.fixture(scope="module")
def engine(vllm_engine: VllmEngine) -> VllmEngine:
    """The engine of all tests: its cache holds 24 blocks of 32 tokens."""
    return vllm_engine


def ask(engine: VllmEngine, *jobs: tuple[list[int], SamplingParams]) -> list[Generation]:
    async def every() -> list[Generation]:
        return list(await asyncio.gather(*(engine.generate(ids, params) for ids, params in jobs)))

    return asyncio.run(asyncio.wait_for(every(), 120))


def prompt(length: int, seed: int = 0) -> list[int]:
    return [int(i) for i in np.random.default_rng(seed).integers(4, 90, size=length)]


def test_its_room_is_that_of_the_real_cache(engine: VllmEngine) -> None:
    assert engine.capacity() == BLOCK * BLOCKS
    assert engine.max_model_len == BLOCK * 20


def test_the_next_turn_finds_the_last_one_in_the_cache(engine: VllmEngine) -> None:
    first = prompt(100, seed=1)
    (generation,) = ask(engine, (first, SamplingParams(60, temperature=0.0)))
    before = engine.stats()
    second = first + generation.ids + prompt(10)
    ask(engine, (second, SamplingParams(4, temperature=0.0)))
    after = engine.stats()
    assert after.prompt_tokens - before.prompt_tokens == len(second)
    # Whole blocks; the last drawn token was never computed.
    assert after.cached_tokens - before.cached_tokens == (len(first) + 59) // BLOCK * BLOCK


def test_a_cache_that_is_too_small_costs_time_and_changes_nothing(engine: VllmEngine, model: PreTrainedModel) -> None:
    before = engine.stats()
    jobs = [(prompt(120, seed=30 + i), SamplingParams(100, temperature=0.0)) for i in range(6)]
    generations = ask(engine, *jobs)
    after = engine.stats()
    assert after.preemptions > before.preemptions
    assert (after.recomputed_tokens or 0) > (before.recomputed_tokens or 0)
    assert (after.running, after.waiting) == (0, 0)
    for (ids, _), generation in zip(jobs, generations, strict=True):
        assert generation.ids == alone(model, ids, 100)


def test_a_turn_ends_where_the_model_can_take_no_more(engine: VllmEngine) -> None:
    (generation,) = ask(engine, (prompt(BLOCK * 20 - 5), SamplingParams(50)))
    assert (len(generation.ids), generation.finish_reason) == (5, "length")


def test_generating_leaves_the_trainers_draws_alone(engine: VllmEngine) -> None:
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    ask(engine, *[(prompt(20, seed=i), SamplingParams(20)) for i in range(4)])
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize(("temperature", "top_k", "top_p"), [(1.0, 0, 1.0), (1.5, 8, 1.0), (1.0, 0, 0.7)])
def test_tokens_are_drawn_with_the_probabilities_asked_for(
    engine: VllmEngine, model: PreTrainedModel, temperature: float, top_k: int, top_p: float
) -> None:
    ids, count = prompt(6), 1500
    params = [SamplingParams(1, temperature=temperature, top_k=top_k, top_p=top_p, seed=i) for i in range(count)]
    drawn = [generation.ids[0] for generation in ask(engine, *((ids, p) for p in params))]
    with torch.no_grad():
        expected = (model(torch.tensor([ids])).logits[0, -1] / temperature).softmax(-1).double().numpy()
    order = np.argsort(-expected)
    before = np.concatenate([[0.0], np.cumsum(expected[order])[:-1]])
    kept = [i for rank, i in enumerate(order) if rank < (top_k or len(order)) and before[rank] < top_p]
    probability = np.zeros(len(expected))
    probability[kept] = expected[kept] / expected[kept].sum()
    seen = np.bincount(drawn, minlength=len(expected))
    # Five standard deviations of a binomial, and room for the rare ones: a chance of about one in a million a token.
    assert (np.abs(seen - count * probability) <= 5 * np.sqrt(count * probability * (1 - probability)) + 5).all()


def test_without_a_sleep_mode_sleeping_changes_nothing(engine: VllmEngine) -> None:
    engine.sleep()
    assert len(ask(engine, (prompt(5), SamplingParams(3)))[0].ids) == 3


@pytest.mark.usefixtures("first_weights")
def test_an_engine_that_sleeps_wakes_with_new_weights(engine: VllmEngine, model: PreTrainedModel) -> None:
    engine.sleeps = True  # a CPU has no memory to give back; what vLLM does around that is the same
    ask(engine, (prompt(5), SamplingParams(3)))
    engine.sleep()
    with pytest.raises(ConfigurationError, match="asleep"):
        ask(engine, (prompt(5), SamplingParams(3)))
    with pytest.raises(ConfigurationError, match="pass the weights to update_weights"):
        engine.update_weights(1)
    engine.update_weights(2, model)
    (generation,) = ask(engine, (prompt(5), SamplingParams(9, 0.0)))
    assert (generation.ids, generation.policy_version) == (alone(model, prompt(5), 9), 2)
    engine.sleeps = False


def test_what_it_cannot_be_is_refused_with_the_way_out(
    engine: VllmEngine, model: PreTrainedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigurationError, match=r"id 1000.* 124 tokens"):
        ask(engine, ([5, 1000], SamplingParams(3)))
    with monkeypatch.context() as patch:
        patch.setattr(type(engine._core), "tokenizer", None)
        with pytest.raises(ConfigurationError, match="tokenizer"):
            ask(engine, ([5], SamplingParams(3, stop=("x",))))
    with pytest.raises(ConfigurationError, match="vllm-server"):
        VllmEngine(model, tensor_parallel_size=2)
    with pytest.raises(ConfigurationError, match="another vLLM engine"):
        VllmEngine(model)


def test_weights_of_other_names_are_refused(engine: VllmEngine) -> None:
    with pytest.raises(ConfigurationError, match="names are missing or unknown"):
        engine.update_weights(3, {"model.norm.weight": torch.ones(64)})


def test_logits_that_are_not_numbers_are_an_error() -> None:
    with pytest.raises(FloatingPointError, match="not numbers"):
        _result(cast("_Request", SimpleNamespace(logprobs=[-1.0, math.nan])), "length")


@pytest.mark.proof
def test_diverged_weights_are_an_error_and_a_closed_engine_says_so(model: PreTrainedModel) -> None:
    # In an engine of its own: vLLM's cache keeps what such weights computed, and a process has one engine at a time.
    needs_vllm()
    engine = VllmEngine(model, dtype="float32", block_size=BLOCK, num_gpu_blocks_override=BLOCKS, max_model_len=640)
    with contextlib.closing(engine):
        engine.update_weights(3, {name: torch.full_like(w, float("nan")) for name, w in model.state_dict().items()})
        with pytest.raises(FloatingPointError, match="not numbers"):
            ask(engine, (prompt(5), SamplingParams(3)))
    with pytest.raises(ConfigurationError, match="closed"):
        ask(engine, ([5], SamplingParams(3)))
    with pytest.raises(ConfigurationError, match="closed"):
        engine.update_weights(4)
    with pytest.raises(ConfigurationError, match="refuses these options"):
        VllmEngine(model, no_such_option=1)
    assert not torch.distributed.is_initialized()
