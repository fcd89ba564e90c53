"""A cache that is kept between turns changes what is computed, never what comes out."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny_models import (
    VOCABULARY,
    alone,
    fresh_logprobs,
    prompts,
    run_all,
    tiny_gemma3,
    tiny_llama,
    tiny_qwen2,
    tiny_qwen3,
)
from transformers import PreTrainedModel
from waiting import wait_for

from rstar2_env.rollout import Generation, SamplingParams, TransformersEngine
from rstar2_env.rollout.engines.packed_batch import PackedBatch
from rstar2_env.rollout.engines.room import token_bytes
from rstar2_env.rollout.engines.slots import SlotCache

GREEDY = SamplingParams(6, temperature=0.0)
LONG = prompts(1, longest=40, seed=2)[0] * 3
MODELS = {"qwen2": tiny_qwen2(), "qwen3": tiny_qwen3(), "llama": tiny_llama()}
LOGPROB_TOLERANCE = 1e-4
"""In nats: a token computed beside others, or after a copy, differs by the rounding of float32."""


@contextmanager
def engines(model: PreTrainedModel, count: int = 1, **options: int) -> Iterator[list[TransformersEngine]]:
    made = [TransformersEngine(model, **options) for _ in range(count)]
    try:
        yield made
    finally:
        for engine in made:
            engine.close()


def ask(engine: TransformersEngine, ids: list[int], params: SamplingParams = GREEDY) -> Generation:
    return run_all(engine, [(ids, params)])[0]


def counts(engine: TransformersEngine) -> tuple[int, int]:
    """Tokens of all prompts so far, and those of them that were computed."""
    stats = engine.stats()
    return stats.prompt_tokens, stats.prompt_tokens - stats.cached_tokens


def kept(engine: TransformersEngine) -> int:
    return engine._batch.pool.tokens


@st.composite
def conversations(draw: st.DrawFn) -> list[list[tuple[int, int, int, int]]]:
    """Turns of conversations: tokens shown, tokens to write, a pause, and whether the end is rewritten (at 0)."""
    turn = st.tuples(st.integers(1, 25), st.integers(1, 9), st.integers(0, 3), st.integers(0, 9))
    return draw(st.lists(st.lists(turn, min_size=1, max_size=4), min_size=1, max_size=7))


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    plan=conversations(),
    seed=st.integers(0, 99),
    shape=st.sampled_from([(256, 1 << 20), (3, 1 << 20), (256, 60), (2, 200)]),
)
def test_conversations_are_the_same_with_and_without_it_however_they_interleave(
    name: str, plan: list[list[tuple[int, int, int, int]]], seed: int, shape: tuple[int, int]
) -> None:
    model = MODELS[name]
    max_rows, room = shape

    async def converse(engine: TransformersEngine, number: int) -> list[Generation]:
        rng = np.random.default_rng([seed, number // 2])  # two of a group begin alike
        ids = [int(i) for i in np.random.default_rng(seed).integers(3, VOCABULARY, size=12)]
        said = []
        for turn, (shown, new, pause, rewrite) in enumerate(plan[number]):
            ids += [int(i) for i in rng.integers(3, VOCABULARY, size=shown)]
            for _ in range(pause):
                await asyncio.sleep(0.001)
            temperature = 0.0 if number % 3 else 1.0
            params = SamplingParams(new, temperature=temperature, seed=100 * number + turn)
            said.append(await engine.generate(ids, params))
            # Some templates rewrite what was said before.
            ids = ids[:-3] if rewrite == 0 and len(ids) > 15 else ids + said[-1].ids
        return said

    async def every(engine: TransformersEngine) -> list[list[Generation]]:
        return list(await asyncio.gather(*(converse(engine, number) for number in range(len(plan)))))

    with (
        engines(model, max_rows=max_rows, max_prefill_tokens=64, max_tokens_in_cache=room) as (keeping,),
        engines(model, max_rows=max_rows, max_prefill_tokens=64, max_tokens_in_cache=0) as (forgetting,),
    ):
        reused, fresh = asyncio.run(every(keeping)), asyncio.run(every(forgetting))
        assert kept(keeping) <= room
        assert kept(forgetting) == 0
    for one, other in zip(reused, fresh, strict=True):
        assert [g.ids for g in one] == [g.ids for g in other]
        for a, b in zip(one, other, strict=True):
            assert torch.allclose(torch.tensor(a.logprobs), torch.tensor(b.logprobs), atol=LOGPROB_TOLERANCE)


@pytest.mark.parametrize("name", MODELS)
def test_the_next_turn_computes_only_what_is_new(name: str) -> None:
    model = MODELS[name]
    with engines(model) as (engine,):
        ids = list(LONG)
        first = ask(engine, ids)
        assert counts(engine) == (len(ids), len(ids))
        for shown in ([5, 6, 7], [9] * 20, [4]):
            before = counts(engine)
            ids += [*first.ids, *shown]
            first = ask(engine, ids)
            assert first.ids == alone(model, ids, 6)
            expected = fresh_logprobs(model, ids, first.ids, 1.0)
            assert torch.allclose(torch.tensor(first.logprobs), expected, atol=LOGPROB_TOLERANCE)
            # The last token of a turn was drawn, and never computed with.
            assert counts(engine) == (before[0] + len(ids), before[1] + 1 + len(shown))


def test_a_prompt_is_shared_with_a_request_that_runs_and_with_one_that_has_ended() -> None:
    model = MODELS["qwen3"]
    group = [*LONG, 5, 6]

    async def late() -> list[Generation]:
        first = asyncio.create_task(engine.generate(group, SamplingParams(200, seed=1)))
        while not counts(engine)[0]:
            await asyncio.sleep(0)
        others = [engine.generate(group, SamplingParams(20, seed=seed)) for seed in range(2, 6)]
        return list(await asyncio.gather(first, *others))

    with engines(model) as (engine,):
        generations = asyncio.run(late())
        assert counts(engine)[1] <= len(group) + 4
        before = counts(engine)[1]
        generations.append(ask(engine, group, SamplingParams(20, seed=9)))
        assert counts(engine)[1] == before + 1
    assert len({tuple(g.ids[:20]) for g in generations}) == 6
    for generation in generations:
        expected = fresh_logprobs(model, group, generation.ids, 1.0)
        assert torch.allclose(torch.tensor(generation.logprobs), expected, atol=LOGPROB_TOLERANCE)


def test_new_weights_see_nothing_that_the_old_ones_computed() -> None:
    model, other = tiny_qwen3(), tiny_qwen3()
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.mul_(1.1)
    with engines(model) as (engine,):
        ids = [*LONG, *ask(engine, LONG).ids, 7, 8]

        async def during() -> None:
            running = asyncio.create_task(engine.generate([*LONG, 9], SamplingParams(400, temperature=0.0)))
            while counts(engine)[0] < 2 * len(LONG) + 1:
                await asyncio.sleep(0)
            await asyncio.to_thread(engine.update_weights, 1, other.state_dict())
            # The request that runs holds a cache of the old weights, during and after it.
            assert (await engine.generate([*LONG, 9], GREEDY)).ids == alone(other, [*LONG, 9], 6)
            assert not running.done()
            await running

        asyncio.run(asyncio.wait_for(during(), 120))
        assert ask(engine, [*LONG, 9]).ids == alone(other, [*LONG, 9], 6)
        assert ask(engine, ids).ids == alone(other, ids, 6)
        engine.update_weights(2)
        assert kept(engine) == 0


def test_an_optimizer_step_that_nobody_told_of_is_noticed() -> None:
    model = tiny_qwen3()
    with engines(model) as (engine,):
        ids = [*LONG, *ask(engine, LONG).ids, 7, 8]
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
        model(torch.tensor([LONG]), labels=torch.tensor([LONG])).loss.backward()
        optimizer.step()
        assert ask(engine, ids).ids == alone(model, ids, 6)


def test_it_is_let_go_when_asked_when_idle_and_when_closed() -> None:
    model = MODELS["qwen3"]
    engine = TransformersEngine(model, idle_s=1000.0)
    try:
        ask(engine, LONG)
        assert kept(engine) == len(LONG) + 5
        engine.forget()  # its thread does it where that has not come to rest yet
        wait_for(lambda: kept(engine) == 0)
        ask(engine, LONG)
        assert kept(engine) == len(LONG) + 5
    finally:
        engine.close()
    assert kept(engine) == 0
    engine = TransformersEngine(model, idle_s=0.2)
    try:
        ask(engine, LONG)
        wait_for(lambda: kept(engine) == 0)
    finally:
        engine.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("rstar2-engine")]


def test_forgotten_caches_free_their_memory_without_a_collection_of_garbage() -> None:
    with engines(MODELS["qwen3"]) as (engine,):
        ask(engine, LONG)
        left = [weakref.ref(t) for layer in engine._batch._cache._layers for t in (layer.keys, layer.values)]
        assert left
        gc.disable()  # a collection may come only after several steps, each of which leaves a cache of its own
        try:
            engine.forget()  # its thread does it where that has not come to rest yet
            wait_for(lambda: all(ref() is None for ref in left))
        finally:
            gc.enable()


def test_its_slots_stay_within_the_capacity_padding_included() -> None:
    with engines(MODELS["qwen3"], max_tokens_in_cache=400) as (engine,):
        batch = engine._batch
        assert isinstance(batch, PackedBatch)
        seen, slots = [], []
        for prompt in prompts(12, longest=60, seed=4):
            ask(engine, prompt)
            seen.append(kept(engine))
            slots.append(batch._cache.slots * batch._cache.columns)
        assert max(seen) > 100
        assert max(slots) <= 400
        assert batch.bytes == token_bytes(engine.model.config, torch.float32) * slots[-1]
        ask(engine, [5] * 500)  # longer than that: it runs alone, and nothing of it stays
        assert kept(engine) == batch.bytes == 0


def test_a_cache_that_was_let_go_does_not_grow_to_its_former_size_step_by_step_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resized: list[tuple[int, int]] = []
    plain = SlotCache.resize

    def watched(cache: SlotCache, order: Sequence[int], tokens: int, slots: int, columns: int) -> None:
        resized.append((slots, columns))
        plain(cache, order, tokens, slots, columns)

    monkeypatch.setattr(SlotCache, "resize", watched)
    with engines(MODELS["qwen3"]) as (engine,):
        jobs = [(ids, replace(GREEDY, max_tokens=60)) for ids in prompts(6, seed=3)]
        first = [found.ids for found in run_all(engine, jobs)]
        grown, largest = len(resized), resized[-1]
        engine.forget()
        wait_for(lambda: engine._batch.bytes == 0)
        resized.clear()
        assert [found.ids for found in run_all(engine, jobs)] == first
    assert grown > 1
    assert resized == [largest]


def test_sequences_that_are_kept_change_places_with_those_that_run_and_go_on_as_they_were(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = MODELS["qwen3"]
    exchanged: list[int] = []
    plain = SlotCache.exchange

    def watched(cache: SlotCache, ones: Sequence[int], others: Sequence[int], tokens: int) -> None:
        exchanged.append(len(ones))
        plain(cache, ones, others, tokens)

    monkeypatch.setattr(SlotCache, "exchange", watched)
    firsts = prompts(24, longest=20, seed=7)

    async def converse(engine: TransformersEngine, number: int) -> tuple[list[int], list[int]]:
        # The first ones end at once and wait while the last ones move to their slots.
        turn = replace(GREEDY, max_tokens=2 if number < 16 else 30)
        said = await engine.generate(firsts[number], turn)
        while number < 16 and not exchanged:
            await asyncio.sleep(0.001)
        ids = [*firsts[number], *said.ids, 5, 6]
        return ids, (await engine.generate(ids, GREEDY)).ids

    async def every(engine: TransformersEngine) -> list[tuple[list[int], list[int]]]:
        return list(await asyncio.gather(*(converse(engine, number) for number in range(24))))

    with engines(model) as (engine,):
        found = asyncio.run(asyncio.wait_for(every(engine), 120))
        cached = engine.stats().cached_tokens
    assert exchanged
    assert cached >= sum(map(len, firsts))
    for ids, answer in found:
        assert answer == alone(model, ids, 6)


def test_requests_move_to_the_slots_of_ended_ones_and_go_on_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    model = MODELS["qwen3"]
    moved: list[int] = []
    plain = SlotCache.move

    def watched(cache: SlotCache, sources: Sequence[int], targets: Sequence[int], tokens: int) -> None:
        moved.append(len(sources))
        plain(cache, sources, targets, tokens)

    monkeypatch.setattr(SlotCache, "move", watched)
    jobs = [
        (prompt, replace(GREEDY, max_tokens=2 if number < 16 else 30))
        for number, prompt in enumerate(prompts(24, longest=20, seed=7))
    ]
    with engines(model, max_tokens_in_cache=0) as (engine,):  # no slot of an ended request is kept
        found = run_all(engine, jobs)
    assert max(moved) >= 8
    assert [g.ids for g in found] == [alone(model, prompt, params.max_tokens) for prompt, params in jobs]


def test_requests_that_outgrow_the_capacity_wait_and_come_out_the_same() -> None:
    model = MODELS["qwen3"]
    jobs = [(prompt, replace(GREEDY, max_tokens=90)) for prompt in prompts(6, seed=5)]
    with engines(model, max_tokens_in_cache=400) as (engine,):
        batch = engine._batch
        assert isinstance(batch, PackedBatch)
        slots: list[int] = []
        hook = model.register_forward_hook(lambda *_: slots.append(batch._cache.slots * batch._cache.columns))
        try:
            found = run_all(engine, jobs)
        finally:
            hook.remove()
        stats = engine.stats()
    assert [g.ids for g in found] == [alone(model, prompt, 90) for prompt, _ in jobs]
    for (prompt, _), generation in zip(jobs, found, strict=True):
        expected = fresh_logprobs(model, prompt, generation.ids, 1.0)
        assert torch.allclose(torch.tensor(generation.logprobs), expected, atol=LOGPROB_TOLERANCE)
    assert stats.preemptions > 0
    assert stats.recomputed_tokens
    assert max(slots) <= 400


@pytest.mark.parametrize(
    "make",
    [tiny_gemma3, lambda: tiny_qwen3(rope_parameters={"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4})],
    ids=["sliding windows", "keys that depend on the length"],
)
def test_models_whose_cache_cannot_be_reused_compute_every_prompt(make: Callable[[], PreTrainedModel]) -> None:
    model = make()
    with engines(model) as (engine,):
        ids = list(LONG)
        for _ in range(3):
            generation = ask(engine, ids)
            assert generation.ids == alone(model, ids, 6)
            ids += [*generation.ids, 5]
        assert kept(engine) == 0
        assert counts(engine)[0] == counts(engine)[1] > 0


def test_a_request_that_was_cancelled_keeps_nothing_and_one_that_failed_spoils_nothing() -> None:
    model = MODELS["qwen3"]
    with engines(model) as (engine,):

        async def give_up() -> None:
            task = asyncio.create_task(engine.generate(LONG, SamplingParams(100_000)))
            while not counts(engine)[0]:
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        asyncio.run(give_up())
        first = ask(engine, LONG)
        assert first.ids == alone(model, LONG, 6)
        ids = [*LONG, *first.ids, 7]
        hook = model.register_forward_pre_hook(lambda *_: (_ for _ in ()).throw(ValueError("gone")))
        with pytest.raises(ValueError, match="gone"):
            ask(engine, ids)
        hook.remove()
        assert ask(engine, ids).ids == alone(model, ids, 6)
