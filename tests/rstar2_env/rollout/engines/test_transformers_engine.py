"""Continuous batching changes nothing: what comes out is what the model alone would have written."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from chat_families import FAMILIES, make_tokenizer
from tiny_models import GREEDY, VOCABULARY, alone, fresh_logprobs, prompts, run_all, tiny_gemma3, tiny_llama, tiny_qwen3
from transformers import PreTrainedModel

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.rollout import Generation, SamplingParams, TransformersEngine


@pytest.mark.parametrize(
    ("make", "max_rows"),
    [(tiny_qwen3, 256), (tiny_qwen3, 5), (tiny_llama, 8), (tiny_gemma3, 256), (tiny_gemma3, 4)],
    ids=["qwen3", "qwen3, few rows", "llama", "gemma3, sliding windows", "gemma3, few rows"],
)
def test_greedy_output_is_that_of_generate_however_rows_come_and_go(
    make: Callable[[], PreTrainedModel], max_rows: int
) -> None:
    model = make()
    engine = TransformersEngine(model, max_rows=max_rows, max_prefill_tokens=64)
    rng = np.random.default_rng(1)
    jobs = [(prompt, int(rng.integers(1, 40))) for prompt in prompts(40)]

    async def one(number: int, prompt: list[int], new: int) -> Generation:
        await asyncio.sleep(0.004 * (number % 11))
        return await engine.generate(prompt, SamplingParams(new, temperature=0.0))

    async def every() -> list[Generation]:
        return list(await asyncio.gather(*(one(i, prompt, new) for i, (prompt, new) in enumerate(jobs))))

    generations = asyncio.run(every())
    engine.close()
    for (prompt, new), generation in zip(jobs, generations, strict=True):
        expected = fresh_logprobs(model, prompt, generation.ids, 1.0)
        assert torch.allclose(torch.tensor(generation.logprobs), expected, atol=1e-4)
        assert generation.ids == alone(model, prompt, new)
        assert generation.finish_reason == "length"


def test_rows_beyond_the_room_of_the_buffers_are_right_too(model: PreTrainedModel) -> None:
    engine = TransformersEngine(model)
    short, long = prompts(1, longest=5)[0], prompts(1, longest=200, seed=3)[0]
    jobs = [(short, 150), (long * 2, 3), (short[:1], 90), (long, 70)]
    generations = run_all(engine, [(prompt, SamplingParams(new, temperature=0.0)) for prompt, new in jobs])
    engine.close()
    assert [g.ids for g in generations] == [alone(model, prompt, new) for prompt, new in jobs]


def test_requests_with_the_same_prompt_share_its_computation(model: PreTrainedModel) -> None:
    engine = TransformersEngine(model)
    passes: list[int] = []
    hook = model.register_forward_pre_hook(
        lambda module, args, kwargs: passes.append(kwargs["input_ids"].numel()), with_kwargs=True
    )
    first, second = prompts(2, longest=20)

    async def every() -> list[Generation]:
        jobs = [asyncio.create_task(engine.generate(p, SamplingParams(6, seed=i))) for i, p in enumerate([first] * 8)]
        jobs += [asyncio.create_task(engine.generate(second, GREEDY))]
        return list(await asyncio.gather(*jobs))

    try:
        generations = asyncio.run(every())
    finally:
        hook.remove()
        engine.close()
    # The prompts once each, and one token for each token drawn but the first: nine requests, GREEDY's of twelve.
    drawn = sum(len(generation.ids) for generation in generations)
    assert sum(passes) <= len(first) + len(second) + drawn - 9 + 8
    assert len({tuple(g.ids) for g in generations[:8]}) > 1
    for generation in generations[:8]:
        expected = fresh_logprobs(model, first, generation.ids, 1.0)
        assert torch.allclose(torch.tensor(generation.logprobs), expected, atol=1e-4)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 1.7])
def test_logprobs_are_those_of_a_fresh_forward_pass_at_the_temperature(
    engine: TransformersEngine, model: PreTrainedModel, temperature: float
) -> None:
    jobs = [(p, SamplingParams(20, temperature=temperature, top_k=9, top_p=0.8, seed=1)) for p in prompts(6)]
    for (prompt, _), generation in zip(jobs, run_all(engine, jobs), strict=True):
        expected = fresh_logprobs(model, prompt, generation.ids, temperature)
        assert torch.allclose(torch.tensor(generation.logprobs), expected, atol=1e-4)


def test_a_seeded_request_draws_the_same_whatever_else_is_in_flight(engine: TransformersEngine) -> None:
    prompt, others = prompts(1)[0], prompts(12, seed=5)
    params = SamplingParams(25, temperature=1.3, seed=7)
    by_itself = run_all(engine, [(prompt, params)])[0]
    crowd = [(p, SamplingParams(3 * i + 1, seed=i)) for i, p in enumerate(others)]
    assert run_all(engine, [*crowd[:6], (prompt, params), *crowd[6:]])[6].ids == by_itself.ids
    assert run_all(engine, [(prompt, SamplingParams(25, temperature=1.3, seed=8))])[0].ids != by_itself.ids


def test_requests_without_a_seed_draw_from_the_engines(model: PreTrainedModel) -> None:
    def draws(seed: int) -> list[list[int]]:
        engine = TransformersEngine(model, seed=seed)
        try:
            return [g.ids for g in run_all(engine, [(prompts(1)[0], SamplingParams(15, temperature=2.0))] * 2)]
        finally:
            engine.close()

    assert draws(0) == draws(0)
    assert draws(0)[0] != draws(0)[1]
    assert draws(0) != draws(1)


@pytest.mark.parametrize(
    ("temperature", "top_k", "top_p"), [(1.0, 0, 1.0), (0.6, 0, 1.0), (1.8, 5, 1.0), (1.0, 0, 0.7), (1.5, 8, 0.6)]
)
def test_tokens_are_drawn_with_the_probabilities_asked_for(
    engine: TransformersEngine, model: PreTrainedModel, temperature: float, top_k: int, top_p: float
) -> None:
    prompt, count = prompts(1)[0], 4000
    params = [SamplingParams(1, temperature=temperature, top_k=top_k, top_p=top_p, seed=i) for i in range(count)]
    drawn = [g.ids[0] for g in run_all(engine, [(prompt, p) for p in params])]
    with torch.no_grad():
        expected = (model(torch.tensor([prompt])).logits[0, -1] / temperature).softmax(-1).double().numpy()
    order = np.argsort(-expected)
    kept = order[: top_k or VOCABULARY]
    before = np.concatenate([[0.0], np.cumsum(expected[order])[:-1]])
    kept = [int(i) for rank, i in enumerate(kept) if rank == 0 or before[rank] < top_p]
    probability = np.zeros(VOCABULARY)
    probability[kept] = expected[kept] / expected[kept].sum()
    seen = np.bincount(drawn, minlength=VOCABULARY)
    assert set(np.flatnonzero(seen)) <= set(kept)
    # Five standard deviations of a binomial, and room for the rare ones: a chance of about one in a million a token.
    margin = 5 * np.sqrt(count * probability * (1 - probability)) + 5
    assert (np.abs(seen - count * probability) <= margin).all()


def test_a_stop_id_ends_the_turn_and_is_part_of_it(engine: TransformersEngine, model: PreTrainedModel) -> None:
    prompt = prompts(1)[0]
    greedy = alone(model, prompt, 12)
    stop = greedy[4]
    generation = run_all(engine, [(prompt, SamplingParams(12, temperature=0.0, stop_ids=(stop,)))])[0]
    assert generation.ids == greedy[: greedy.index(stop) + 1]
    assert generation.finish_reason == "stop"


def test_a_stop_string_ends_the_turn_wherever_tokens_part_it() -> None:
    tokenizer = make_tokenizer(FAMILIES[0])
    text = "run it </tool_call> then é漢</tool_call>"
    script = tokenizer.encode(text, add_special_tokens=False)
    model = tiny_qwen3(vocab_size=len(tokenizer))
    engine = TransformersEngine(model, tokenizer)
    # The model is made to say the script by a bias that is far larger than its opinions.
    step = iter([*script, *script])
    hook = model.register_forward_hook(lambda module, args, output: _say(output, next(step)))
    try:
        for stop, end in ((("</tool_call>",), "run it </tool_call>"), (("zzz", "é漢"), "run it </tool_call> then é漢")):
            generation = run_all(engine, [([5, 6], SamplingParams(60, temperature=0.0, stop=stop))])[0]
            assert tokenizer.decode(generation.ids).startswith(end)
            assert not tokenizer.decode(generation.ids[:-1]).startswith(end)
            assert generation.finish_reason == "stop"
            step = iter(script)
    finally:
        hook.remove()
        engine.close()


def _say(output: Any, token: int) -> Any:
    output.logits[:, -1, token] = 1e4
    return output


def test_stop_strings_without_a_tokenizer_and_an_empty_prompt_are_refused(engine: TransformersEngine) -> None:
    with pytest.raises(ConfigurationError, match="tokenizer"):
        run_all(engine, [([5], SamplingParams(1, stop=("x",)))])
    with pytest.raises(ConfigurationError, match="empty"):
        run_all(engine, [([], GREEDY)])


def test_parameters_out_of_range_are_refused(model: PreTrainedModel) -> None:
    for options in ({"max_tokens": 0}, {"temperature": -1.0}, {"top_p": 0.0}, {"top_p": 1.1}, {"top_k": -1}):
        with pytest.raises(ConfigurationError):
            SamplingParams(**({"max_tokens": 1} | options))  # type: ignore[arg-type]  # a table of bad values
    with pytest.raises(ConfigurationError):
        TransformersEngine(model, max_rows=0)
