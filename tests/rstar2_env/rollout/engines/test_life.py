"""An engine from its first request to its end: cancelling, failures, threads, new weights."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
import torch
from tiny_models import GREEDY, alone, prompts, run_all, tiny_qwen3
from transformers import PreTrainedModel

from rstar2_env.rollout import Engine, Generation, SamplingParams, TransformersEngine
from rstar2_env.rollout.engines import transformers_engine
from rstar2_env.rollout.engines.room import token_bytes


def test_cancelling_the_awaiting_task_drops_the_row(engine: TransformersEngine, model: PreTrainedModel) -> None:
    passes: list[int] = []
    hook = model.register_forward_pre_hook(
        lambda module, args, kwargs: passes.append(len(kwargs["input_ids"])), with_kwargs=True
    )

    async def cancel_one() -> Generation:
        endless = [asyncio.create_task(engine.generate(p, SamplingParams(100_000, seed=1))) for p in prompts(3)]
        while len(passes) < 10:
            await asyncio.sleep(0.001)
        for task in endless:
            task.cancel()
        await asyncio.gather(*endless, return_exceptions=True)
        return await engine.generate(prompts(1)[0], GREEDY)

    try:
        generation = asyncio.run(asyncio.wait_for(cancel_one(), 60))
    finally:
        hook.remove()
    assert generation.ids == alone(model, prompts(1)[0], 12)
    assert passes[-5:] == [1] * 5  # the rows of the cancelled ones are gone


def test_a_loop_that_ends_early_leaves_an_engine_that_works(engine: TransformersEngine, model: PreTrainedModel) -> None:
    async def give_up() -> None:
        for p in prompts(4):
            asyncio.get_running_loop().create_task(engine.generate(p, SamplingParams(100_000)))
        await asyncio.sleep(0.05)

    for _ in range(3):
        asyncio.run(give_up())  # cancels what is in flight, wherever the engine's thread just is
        assert run_all(engine, [(prompts(1)[0], GREEDY)])[0].ids == alone(model, prompts(1)[0], 12)


def test_an_exception_in_the_model_reaches_every_waiter_and_the_engine_goes_on(
    engine: TransformersEngine, model: PreTrainedModel
) -> None:
    passes = []

    def fail(*_: Any) -> None:
        passes.append(1)
        if len(passes) == 4:
            raise ValueError("the device is gone")

    async def every() -> list[Any]:
        jobs = (engine.generate(p, GREEDY) for p in prompts(5))
        return list(await asyncio.gather(*jobs, return_exceptions=True))

    hook = model.register_forward_pre_hook(fail)
    try:
        outcomes = asyncio.run(asyncio.wait_for(every(), 60))
    finally:
        hook.remove()
    assert [str(outcome) for outcome in outcomes] == ["the device is gone"] * 5
    assert run_all(engine, [(prompts(1)[0], GREEDY)])[0].ids == alone(model, prompts(1)[0], 12)


def test_weights_that_are_not_numbers_are_an_error_and_no_text() -> None:
    model = tiny_qwen3()
    with torch.no_grad():
        model.lm_head.weight.fill_(float("nan"))
    engine = TransformersEngine(model)
    with pytest.raises(FloatingPointError, match="not numbers"):
        run_all(engine, [([5, 6], GREEDY)])
    engine.close()


def test_it_serves_several_event_loops_one_after_the_other_and_at_once(
    engine: TransformersEngine, model: PreTrainedModel
) -> None:
    expected = [alone(model, p, 12) for p in prompts(4)]
    assert [run_all(engine, [(p, GREEDY)])[0].ids for p in prompts(4)] == expected
    results: dict[int, list[int]] = {}

    def serve(number: int) -> None:
        results[number] = run_all(engine, [(prompts(4)[number], GREEDY)])[0].ids

    threads = [threading.Thread(target=serve, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [results[number] for number in range(4)] == expected


def test_requests_that_arrive_all_the_time_are_never_lost(engine: TransformersEngine) -> None:
    async def trickle() -> list[Generation]:
        tasks = []
        for number in range(300):
            tasks.append(asyncio.create_task(engine.generate([5 + number % 9], SamplingParams(1 + number % 3))))
            await asyncio.sleep(0)
        return list(await asyncio.gather(*tasks))

    assert len(asyncio.run(asyncio.wait_for(trickle(), 60))) == 300


def test_no_thread_is_left_after_close(model: PreTrainedModel) -> None:
    before = set(threading.enumerate())
    engine = TransformersEngine(model)
    run_all(engine, [(prompts(1)[0], GREEDY)])
    assert any("rstar2-engine" in thread.name for thread in set(threading.enumerate()) - before)
    engine.close()
    engine.close()
    assert not [t for t in set(threading.enumerate()) - before if "rstar2-engine" in t.name]


def test_close_ends_what_is_in_flight(model: PreTrainedModel) -> None:
    engine = TransformersEngine(model)

    async def close_early() -> list[Any]:
        tasks = [asyncio.create_task(engine.generate(p, SamplingParams(100_000))) for p in prompts(3)]
        await asyncio.sleep(0.05)
        await asyncio.to_thread(engine.close)
        return list(await asyncio.gather(*tasks, return_exceptions=True))

    outcomes = asyncio.run(asyncio.wait_for(close_early(), 60))
    assert all(isinstance(outcome, asyncio.CancelledError) for outcome in outcomes)


def test_new_weights_enter_between_two_passes_and_name_their_version() -> None:
    model, other = tiny_qwen3(), tiny_qwen3(num_hidden_layers=2)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(0.05)
    engine = TransformersEngine(model)
    prompt = prompts(1)[0]

    async def update() -> tuple[Generation, Generation]:
        running = asyncio.create_task(engine.generate(prompt, SamplingParams(3000, temperature=0.0)))
        await asyncio.sleep(0.05)
        await asyncio.to_thread(engine.update_weights, 3, other.state_dict())
        after = await engine.generate(prompt, GREEDY)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return after, await engine.generate(prompt, GREEDY)

    for generation in asyncio.run(asyncio.wait_for(update(), 60)):
        assert generation.policy_version == 3
        assert generation.ids == alone(other, prompt, 12)
    with pytest.raises(RuntimeError, match="state_dict"):
        engine.update_weights(4, {"nothing": torch.zeros(1)})
    engine.update_weights(5)
    assert run_all(engine, [(prompt, GREEDY)])[0].policy_version == 5
    engine.close()


@pytest.mark.filterwarnings("ignore:.gradient_checkpointing_enable:FutureWarning")
def test_a_module_in_training_mode_samples_as_in_evaluation_and_trains_on_afterwards() -> None:
    model = tiny_qwen3(attention_dropout=0.5)
    prompt = prompts(1)[0]
    expected = alone(model, prompt, 12)
    model.gradient_checkpointing_enable()
    model.train()
    model.lm_head.eval()
    engine = TransformersEngine(model)
    assert run_all(engine, [(prompt, GREEDY)])[0].ids == expected
    assert model.training
    assert model.model.layers[0].training
    assert not model.lm_head.training
    loss = model(torch.tensor([prompt]), labels=torch.tensor([prompt])).loss
    loss.backward()
    assert all(p.grad is not None for p in model.parameters())
    engine.close()


def test_it_is_an_engine_with_the_capacity_it_was_given(model: PreTrainedModel) -> None:
    engine = TransformersEngine(model, max_tokens_in_cache=1234)
    assert isinstance(engine, Engine)
    assert engine.capacity() == 1234
    engine.close()


def test_the_memory_for_its_cache_is_measured_again_when_it_begins_anew(
    model: PreTrainedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    each = token_bytes(model.config, torch.float32)
    free = 4000 * each
    monkeypatch.setattr(transformers_engine, "free_bytes", lambda device: free)
    engine = TransformersEngine(model, cache_share=0.5)
    assert engine.capacity() == 2000
    free = 1000 * each  # an optimizer has allocated its state
    run_all(engine, [(prompts(1)[0], GREEDY)])
    assert engine.capacity() == 500
    free = 100 * each
    run_all(engine, [(prompts(1)[0], GREEDY)])
    assert engine.capacity() == 500  # its own cache is among what is not free
    engine.forget()
    run_all(engine, [(prompts(1)[0], GREEDY)])
    assert engine.capacity() == 50
    engine.close()


@pytest.mark.parametrize(("threads", "within"), [(None, 1), (3, 3)])
def test_a_narrow_model_is_computed_with_one_thread_and_torchs_setting_returns(
    threads: int | None, within: int
) -> None:
    usual = torch.get_num_threads()
    seen: set[int] = set()
    torch.set_num_threads(2)
    try:
        model = tiny_qwen3()
        model.register_forward_hook(lambda *_: seen.add(torch.get_num_threads()))
        engine = TransformersEngine(model, threads=threads)
        try:
            run_all(engine, [([5, 6, 7], SamplingParams(3))])
            assert engine._thread is not None
            after = engine._thread.submit(torch.get_num_threads).result()
        finally:
            engine.close()
        assert (seen, after, torch.get_num_threads()) == ({within}, 2, 2)
    finally:
        torch.set_num_threads(usual)
