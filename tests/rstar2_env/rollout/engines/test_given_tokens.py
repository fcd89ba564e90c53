"""The log-probabilities of given tokens, beside generation and alone, are those of a forward pass over each."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
import torch
from scripted_engine import echo_player, scripted
from tiny_models import tiny_qwen3

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.rollout import SamplingParams, TransformersEngine
from rstar2_env.rollout.engines.given_tokens import ScoreRequest, fitting

pytestmark = pytest.mark.usefixtures("no_thread_left")


@pytest.fixture
def engine():
    made = TransformersEngine(tiny_qwen3(vocab_size=200, max_position_embeddings=512), max_prefill_tokens=200)
    yield made
    made.close()


def pairs(count, seed=0):
    rng = np.random.default_rng(seed)
    return [
        (rng.integers(0, 200, rng.integers(1, 40)).tolist(), rng.integers(0, 200, rng.integers(1, 30)).tolist())
        for _ in range(count)
    ]


def expected(model, prompt, ids):
    with torch.no_grad():
        logits = model(torch.tensor([prompt + ids])).logits[0, len(prompt) - 1 : -1]
    return logits.log_softmax(-1).gather(1, torch.tensor(ids)[:, None])[:, 0].tolist()


def test_scores_are_those_of_a_forward_pass_while_others_generate(engine):
    given = pairs(12)
    params = SamplingParams(max_tokens=20, seed=1)

    async def run():
        alone = await engine.generate([5, 6, 7], params)
        both = await asyncio.gather(engine.generate([5, 6, 7], params), *(engine.score(*pair) for pair in given))
        return alone, both

    alone, (beside, *found) = asyncio.run(run())
    assert beside.ids == alone.ids
    for (prompt, ids), values in zip(given, found, strict=True):
        assert values == pytest.approx(expected(engine.model, prompt, ids), abs=1e-4)


def test_what_the_engine_drew_is_scored_as_it_was_drawn(engine):
    async def run():
        generation = await engine.generate([5, 6, 7], SamplingParams(max_tokens=20, seed=1))
        return generation, await engine.score([5, 6, 7], generation.ids)

    generation, scores = asyncio.run(run())
    assert scores == pytest.approx(generation.logprobs, abs=1e-4)


def test_a_module_in_training_is_scored_without_dropout_and_given_back_in_training(engine):
    engine.model.train()
    (prompt, ids), *_ = pairs(1)
    for module in engine.model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.5
    first = asyncio.run(engine.score(prompt, ids))
    assert asyncio.run(engine.score(prompt, ids)) == first
    assert engine.model.training
    assert all(parameter.grad is None for parameter in engine.model.parameters())


def test_nothing_is_scored_as_nothing_and_an_empty_prompt_is_refused(engine):
    assert asyncio.run(engine.score([1], [])) == []
    with pytest.raises(ConfigurationError, match="empty prompt"):
        asyncio.run(engine.score([], [1]))


def test_a_failure_reaches_its_caller_and_the_engine_goes_on(engine):
    with pytest.raises(IndexError):
        asyncio.run(engine.score([1, 2], [100000]))
    assert len(asyncio.run(engine.score([1, 2], [3]))) == 1


def test_a_pass_takes_as_many_as_fit():
    rows = [ScoreRequest([1] * 10, [1] * 10) for _ in range(9)]
    assert fitting(rows, 100) == 5
    assert fitting([ScoreRequest([1] * 500, [1])], 100) == 1
    assert fitting([ScoreRequest([1], [1] * 600) for _ in range(3)], 10_000) == 1
    assert fitting([], 100) == 0


def test_an_engine_that_cannot_is_told_with_what_to_do():
    with (
        echo_player(scripted(lambda text: "stop")) as player,
        pytest.raises(ConfigurationError, match=r"ScriptedEngine cannot compute the log-probabilities.*transformers"),
    ):
        asyncio.run(player.score([1], [2]))


def test_a_player_asks_its_engine(engine):
    with echo_player(scripted(lambda text: "stop")) as player:
        player.engine = engine
        (prompt, ids), *_ = pairs(1)
        assert asyncio.run(player.score(prompt, ids)) == pytest.approx(expected(engine.model, prompt, ids), abs=1e-4)


@pytest.mark.parametrize("plain", [False, True])
def test_candidates_are_the_largest_log_probabilities_of_a_forward_pass(engine, plain):
    """At the first tokens alone, and for the request alone that asks for them, whoever is computed beside it."""
    if plain:
        from rstar2_env.rollout.engines.plain_batch import PlainBatch

        engine._batch = PlainBatch(engine.model, 200, 4096, finish=engine._finish)
    asked = SamplingParams(max_tokens=9, temperature=1.5, seed=1, candidates=4, measured_tokens=3)

    async def run():
        return await asyncio.gather(
            engine.generate([5, 6, 7], asked),
            engine.generate([5, 6, 7], SamplingParams(max_tokens=9, temperature=1.5, seed=1)),
            engine.generate([9, 8], SamplingParams(max_tokens=5, seed=2, candidates=2, measured_tokens=20)),
        )

    first, other, short = asyncio.run(run())
    assert first.ids == other.ids
    assert (len(first.candidates), other.candidates, len(short.candidates)) == (3, [], 5)
    with torch.no_grad():
        logits = engine.model(torch.tensor([[5, 6, 7, *first.ids]])).logits[0, 2:5]
    expected = (logits / 1.5).log_softmax(-1).topk(4).values
    assert np.allclose(first.candidates, expected.numpy(), atol=1e-4)
    assert engine.most_candidates == 200
