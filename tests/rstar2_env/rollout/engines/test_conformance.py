"""Every engine keeps the protocol: the same questions to the module's own, to vLLM in process, and to a real server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scripted_engine import EchoEnv
from tiny_models import alone, fresh_logprobs
from transformers import AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from vllm_serve import policy_model

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.rollout import (
    Budget,
    ChatCodec,
    Engine,
    EpisodeRequest,
    Generation,
    Player,
    SamplingParams,
    TransformersEngine,
    VllmServerEngine,
)

pytestmark = pytest.mark.slow

BOUND = 1e-4
"""Largest distance of a log-probability from the module's own forward pass, in float32."""

GREEDY = SamplingParams(max_tokens=24, temperature=0.0)


@pytest.fixture(scope="module")
def tokenizer(policy_folder: Path) -> PreTrainedTokenizerBase:
    return AutoTokenizer.from_pretrained(str(policy_folder))


@pytest.fixture(scope="module")
def model(policy_folder: Path) -> PreTrainedModel:
    return policy_model(policy_folder)


@pytest.fixture(scope="module", params=["transformers", "vllm", "vllm-server"])
def engine(
    request: pytest.FixtureRequest,
    policy_folder: Path,
    tokenizer: PreTrainedTokenizerBase,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Any]:
    engine: Any
    if request.param == "transformers":
        engine = TransformersEngine(policy_model(policy_folder), tokenizer)
    elif request.param == "vllm":
        yield request.getfixturevalue("vllm_engine")
        return
    else:
        address = request.getfixturevalue("vllm_server")
        engine = VllmServerEngine(address, weights_dir=tmp_path_factory.mktemp("weights"), start_timeout_s=240)
    yield engine
    engine.close()


@pytest.fixture
def restored(engine: Any, model: PreTrainedModel) -> Iterator[None]:
    """Gives the engine its first weights back."""
    yield
    engine.update_weights(0, model.state_dict())


def prompts(count: int, longest: int = 40, seed: int = 0) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    return [[int(i) for i in rng.integers(4, 90, size=rng.integers(1, longest))] for _ in range(count)]


def ask(engine: Engine, *jobs: tuple[list[int], SamplingParams]) -> list[Generation]:
    async def every() -> list[Generation]:
        return list(await asyncio.gather(*(engine.generate(ids, params) for ids, params in jobs)))

    return asyncio.run(asyncio.wait_for(every(), 120))


def close_to(model: PreTrainedModel, prompt: list[int], generation: Generation, temperature: float) -> bool:
    expected = fresh_logprobs(model, prompt, generation.ids, temperature)
    return torch.allclose(torch.tensor(generation.logprobs), expected, atol=BOUND)


def test_greedy_output_is_that_of_generate_however_rows_come_and_go(engine: Engine, model: PreTrainedModel) -> None:
    jobs = [(p, SamplingParams(1 + 3 * (i % 9), temperature=0.0)) for i, p in enumerate(prompts(24))]

    async def trickle() -> list[Generation]:
        async def one(number: int) -> Generation:
            await asyncio.sleep(0.003 * (number % 7))
            return await engine.generate(*jobs[number])

        return list(await asyncio.gather(*map(one, range(len(jobs)))))

    for (prompt, params), generation in zip(jobs, asyncio.run(trickle()), strict=True):
        assert generation.ids == alone(model, prompt, params.max_tokens)
        assert generation.finish_reason == "length"
        assert close_to(model, prompt, generation, 1.0)


@pytest.mark.parametrize(
    ("temperature", "top_k", "top_p"), [(1.0, 0, 1.0), (0.5, 0, 1.0), (1.7, 9, 1.0), (1.0, 0, 0.8)]
)
def test_logprobs_are_those_of_the_trainers_forward_pass_at_the_temperature(
    engine: Engine, model: PreTrainedModel, temperature: float, top_k: int, top_p: float
) -> None:
    params = [SamplingParams(30, temperature=temperature, top_k=top_k, top_p=top_p, seed=i) for i in range(8)]
    jobs = list(zip(prompts(8), params, strict=True))
    for (prompt, _), generation in zip(jobs, ask(engine, *jobs), strict=True):
        assert close_to(model, prompt, generation, temperature)


def test_candidates_are_the_most_likely_tokens_of_the_trainers_forward_pass(
    engine: Any, model: PreTrainedModel
) -> None:
    params = [
        SamplingParams(12, temperature=1.5, seed=seed, candidates=wanted, measured_tokens=7)
        for seed, wanted in enumerate((0, 1, 6))
    ]
    jobs = list(zip(prompts(3), params, strict=True))
    for (prompt, wanted), generation in zip(jobs, ask(engine, *jobs), strict=True):
        shown = generation.candidates
        assert [len(each) for each in shown] == [wanted.candidates] * (7 if wanted.candidates else 0)
        with torch.no_grad():
            logits = model(torch.tensor([prompt + generation.ids])).logits[0, len(prompt) - 1 : -1] / 1.5
        expected = logits.log_softmax(-1).topk(max(1, wanted.candidates)).values[: len(shown)]
        assert not shown or torch.allclose(torch.tensor(shown), expected, atol=BOUND)
    assert engine.most_candidates >= 20
    with pytest.raises(ConfigurationError, match="most likely tokens"):
        ask(engine, (prompts(1)[0], SamplingParams(2, candidates=engine.most_candidates + 1)))


def test_a_seeded_request_draws_the_same_whatever_else_is_in_flight(engine: Engine) -> None:
    prompt = prompts(1)[0]
    params = SamplingParams(25, temperature=1.3, seed=2**64 - 7)
    (by_itself,) = ask(engine, (prompt, params))
    crowd = [(p, SamplingParams(3 * i + 1, seed=i)) for i, p in enumerate(prompts(9, seed=5))]
    assert ask(engine, *crowd[:5], (prompt, params), *crowd[5:])[5].ids == by_itself.ids
    assert ask(engine, (prompt, SamplingParams(25, temperature=1.3, seed=8)))[0].ids != by_itself.ids


def test_requests_without_a_seed_draw_differently(engine: Engine) -> None:
    first, second = ask(engine, *[(prompts(1)[0], SamplingParams(20, temperature=1.5))] * 2)
    assert first.ids != second.ids


def test_a_stop_id_ends_the_turn_and_is_part_of_it(engine: Engine, model: PreTrainedModel) -> None:
    prompt = prompts(1)[0]
    greedy = alone(model, prompt, 24)
    stop = greedy[10]
    (generation,) = ask(engine, (prompt, SamplingParams(24, temperature=0.0, stop_ids=(stop,))))
    assert generation.ids == greedy[: greedy.index(stop) + 1]
    assert len(generation.logprobs) == len(generation.ids)
    assert generation.finish_reason == "stop"


def test_only_the_ids_that_were_asked_for_end_a_turn(
    engine: Engine, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> None:
    end = int(tokenizer.eos_token_id)  # type: ignore[arg-type]  # the tiny tokenizer has one
    prompt, params = some_turn_with(engine, {end})
    (whole,) = ask(engine, (prompt, params))
    (ended,) = ask(engine, (prompt, SamplingParams(60, temperature=1.5, seed=params.seed, stop_ids=(end,))))
    assert len(whole.ids) == 60
    assert ended.ids == whole.ids[: whole.ids.index(end) + 1]
    assert ended.finish_reason == "stop"


@pytest.mark.parametrize("special", [False, True], ids=["plain", "of a special token"])
def test_a_stop_string_ends_the_turn_and_its_last_token_is_part_of_it(
    engine: Engine, tokenizer: PreTrainedTokenizerBase, special: bool
) -> None:
    inside = {int(i) for i in tokenizer.all_special_ids} if special else set(range(10, 60))
    prompt, params = some_turn_with(engine, inside)
    (whole,) = ask(engine, (prompt, params))
    at = next(number for number, token in enumerate(whole.ids) if number > 1 and token in inside)
    # Spans the last two tokens, so that no token has it alone.
    stop = str(tokenizer.decode(whole.ids[at - 1]))[-1:] + str(tokenizer.decode(whole.ids[at]))
    text = [str(tokenizer.decode(whole.ids[:end])) for end in range(len(whole.ids) + 1)]
    expected = next(end for end, part in enumerate(text) if stop in part)
    (ended,) = ask(engine, (prompt, SamplingParams(60, temperature=1.5, seed=params.seed, stop=("never said", stop))))
    assert ended.ids == whole.ids[:expected]
    assert len(ended.logprobs) == expected
    assert ended.finish_reason == "stop"


def some_turn_with(engine: Engine, tokens: set[int]) -> tuple[list[int], SamplingParams]:
    """A request that draws one of the tokens somewhere after its second."""
    prompt = prompts(1)[0]
    params = [SamplingParams(60, temperature=1.5, seed=seed) for seed in range(24)]
    generations = ask(engine, *((prompt, p) for p in params))
    return prompt, next(p for p, g in zip(params, generations, strict=True) if tokens & set(g.ids[2:]))


@pytest.mark.usefixtures("restored")
def test_new_weights_change_the_output_to_the_new_models_three_times_over(engine: Engine, policy_folder: Path) -> None:
    # Long enough to fill blocks of a cache of prefixes, which must not answer for other weights.
    prompt = prompts(1, seed=3)[0] * 40
    prompt = prompt[:300]
    said = []
    for version in (1, 2, 3):
        other = policy_model(policy_folder)
        with torch.no_grad():
            for number, parameter in enumerate(other.parameters()):
                parameter.add_(0.02 * version * torch.randn(parameter.shape, generator=seeded(number)))
        engine.update_weights(version, other.state_dict())
        generations = ask(engine, (prompt, GREEDY), (prompt, SamplingParams(24, seed=4)))
        assert generations[0].ids == alone(other, prompt, 24)
        assert all(close_to(other, prompt, generation, 1.0) for generation in generations)
        assert [generation.policy_version for generation in generations] == [version] * 2
        said.append(tuple(generations[0].ids))
    assert len(set(said)) == 3


def seeded(number: int) -> torch.Generator:
    return torch.Generator().manual_seed(number)


@pytest.mark.usefixtures("restored")
def test_requests_in_flight_survive_new_weights_with_the_version_that_they_began_with(
    engine: Engine, model: PreTrainedModel
) -> None:
    async def update() -> tuple[Generation, Generation]:
        running = asyncio.create_task(engine.generate(prompts(1)[0], SamplingParams(600, temperature=0.0)))
        await engine.generate(prompts(2)[1], GREEDY)
        await asyncio.to_thread(engine.update_weights, 7, model.state_dict())
        return await engine.generate(prompts(2)[1], GREEDY), await running

    after, running = asyncio.run(asyncio.wait_for(update(), 120))
    assert after.policy_version == 7
    assert running.policy_version == 0
    assert running.ids == alone(model, prompts(1)[0], 600)


def test_a_version_without_weights_is_noted(engine: Engine) -> None:
    engine.update_weights(11)
    assert ask(engine, (prompts(1)[0], GREEDY))[0].policy_version == 11
    engine.update_weights(0)


@pytest.mark.usefixtures("restored")
def test_weights_of_another_model_are_refused_and_the_engine_lives_on(engine: Engine, model: PreTrainedModel) -> None:
    with pytest.raises(Exception, match=r"state_dict|nothing"):
        engine.update_weights(4, {"nothing": torch.zeros(1)})
    engine.update_weights(5, model.state_dict())
    assert ask(engine, (prompts(1)[0], GREEDY))[0].ids == alone(model, prompts(1)[0], 24)


def test_cancelling_leaves_no_request(engine: Any, model: PreTrainedModel) -> None:
    async def cancel() -> Generation:
        endless = [asyncio.create_task(engine.generate(p, SamplingParams(1500, seed=1))) for p in prompts(6)]
        await asyncio.sleep(0.3)
        for task in endless:
            task.cancel()
        outcomes = await asyncio.gather(*endless, return_exceptions=True)
        assert all(isinstance(outcome, asyncio.CancelledError) for outcome in outcomes)
        return await engine.generate(prompts(1)[0], GREEDY)

    assert asyncio.run(asyncio.wait_for(cancel(), 60)).ids == alone(model, prompts(1)[0], 24)
    if hasattr(engine, "stats"):
        until = time.monotonic() + 30
        while engine.stats().running and time.monotonic() < until:
            time.sleep(0.05)
        assert engine.stats().running == engine.stats().waiting == 0


def test_it_says_how_much_it_can_hold_and_what_it_does(engine: Any) -> None:
    assert isinstance(engine, Engine)
    assert engine.capacity() >= 768  # the whole cache of the vLLM engine here
    if hasattr(engine, "stats"):
        before = engine.stats()
        ask(engine, (prompts(1)[0], GREEDY))
        after = engine.stats()
        assert after.generated_tokens - before.generated_tokens == 24
        assert after.prompt_tokens - before.prompt_tokens == len(prompts(1)[0])
        assert after.preemptions == before.preemptions
        assert 0 <= after.kv_usage < 1


@pytest.mark.parametrize(
    ("ids", "params", "reason"),
    [([], GREEDY, "empty"), ([5] * 2048, GREEDY, "2048"), ([5], SamplingParams(1, temperature=2.5), "temperature")],
    ids=["an empty prompt", "a prompt without room for a turn", "a temperature"],
)
def test_what_cannot_be_done_is_refused_with_the_reason(
    engine: Engine, ids: list[int], params: SamplingParams, reason: str
) -> None:
    if isinstance(engine, TransformersEngine) and ids:
        pytest.skip("the module itself has no such limits")
    with pytest.raises(ConfigurationError, match=reason):
        ask(engine, (ids, params))


def test_a_greedy_episode_of_many_turns_is_the_same_with_every_engine(
    engine: Engine, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> None:
    def play(engine: Engine) -> list[list[int]]:
        make: Callable[[], Any] = lambda: EchoEnv(turns=4)  # noqa: E731
        sampling = SamplingParams(max_tokens=1, temperature=0.0)
        budget = Budget(tokens=400, turn_tokens=30)
        with Player(make, engine, ChatCodec(tokenizer), sampling=sampling, budget=budget) as player:
            episodes = player.play([EpisodeRequest(group=i, seed=i) for i in range(4)])
        assert all(episode.turns == 4 and episode.error is None for episode in episodes)
        return [episode.prompt_ids + episode.completion_ids for episode in episodes]

    reference = TransformersEngine(model, tokenizer)
    try:
        assert play(engine) == play(reference)
    finally:
        reference.close()
