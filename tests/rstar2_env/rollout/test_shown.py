"""An episode is played under one prompt and trains under another; a turn is asked for without an environment."""

from __future__ import annotations

import asyncio
import json

import pytest
import torch
from scripted_engine import EchoEnv, echo_player, scripted
from tiny_models import tiny_qwen3

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import BranchError
from rstar2_env.rollout import Budget, EpisodeRequest, Player, SamplingParams, TransformersEngine

HELP = "{question}\nThe first try was {question}, and wrong."


@pytest.fixture(scope="module")
def helped():
    """Two episodes with help, one without, and what made them."""
    codec = scripted(lambda text: "").codec
    model = tiny_qwen3(vocab_size=len(codec.tokenizer), max_position_embeddings=2048)
    engine = TransformersEngine(model)
    budget = Budget(turn_tokens=9)
    with Player(lambda: EchoEnv(turns=2), engine, codec, sampling=SamplingParams(1), budget=budget) as player:
        requests = [EpisodeRequest(seed=1, sampling_seed=seed, shown=shown) for seed, shown in ((1, HELP), (1, None))]
        yield model, codec, player, player.play(requests)
    engine.close()


def test_its_tokens_are_drawn_under_the_prompt_that_is_shown_and_its_row_has_the_other(helped):
    model, codec, _, (with_help, plain) = helped
    question = plain.messages[0].content
    shown = f"{question}\nThe first try was {{question}}, and wrong."
    assert (with_help.shown, with_help.source, with_help.off_policy) == (shown, "refined", True)
    assert with_help.prompt_ids == plain.prompt_ids == codec.prompt("", question)
    assert with_help.messages[0] == plain.messages[0]
    assert with_help.played_ids == with_help.shown_ids == codec.prompt("", shown)
    ids = torch.tensor([with_help.shown_ids + with_help.completion_ids])
    with torch.no_grad():
        logits = model(ids).logits[0, len(with_help.shown_ids) - 1 : -1]
    drawn = logits.log_softmax(-1).gather(1, torch.tensor(with_help.completion_ids)[:, None])[:, 0]
    assert torch.allclose(torch.tensor(with_help.logprobs), drawn * torch.tensor(with_help.mask), atol=1e-4)
    assert (plain.shown, plain.shown_ids, plain.source, plain.off_policy) == ("", [], "policy", False)
    assert plain.played_ids == plain.prompt_ids


def test_the_record_shows_both_prompts(helped):
    with_help = helped[3][0]
    again = Episode.from_record(json.loads(json.dumps(with_help.record())))
    assert (again.shown, again.source, again.messages) == (with_help.shown, "refined", with_help.messages)


def test_a_text_that_changes_nothing_is_no_help():
    with echo_player(scripted(lambda text: "stop")) as player:
        (episode,) = player.play([EpisodeRequest(shown="{question}")])
    assert (episode.shown, episode.shown_ids, episode.source) == ("", [], "policy")


def test_a_branch_goes_on_under_the_prompt_that_its_parent_was_shown(helped):
    _, _, player, (with_help, _) = helped
    token = with_help.steps[1].start
    child = asyncio.run(player.branch(with_help, token, sampling_seed=5, shown=HELP))
    assert child.completion_ids[:token] == with_help.completion_ids[:token]
    assert (child.shown_ids, child.prompt_ids) == (with_help.shown_ids, with_help.prompt_ids)
    with pytest.raises(BranchError, match="before turn 1"):
        asyncio.run(player.branch(with_help, token, sampling_seed=5))


def test_an_episode_that_was_left_off_goes_on_under_the_prompt_that_it_was_shown(helped):
    player, with_help = helped[2], helped[3][0]
    record = Episode(seed=1)
    asyncio.run(player.carry(record, sampling_seed=1, begun=with_help, shown=HELP))
    assert (record.completion_ids, record.shown_ids) == (with_help.completion_ids, with_help.shown_ids)


def test_a_turn_is_asked_for_without_an_environment():
    engine = scripted(lambda text: "seven" if "Name a number." in text else "?")
    with echo_player(engine) as player:
        told = asyncio.run(player.reply("Name a number.", system="Be brief.", group=4, sampling_seed=1))
    assert [(one.role, one.content) for one in told.messages] == [
        ("system", "Be brief."),
        ("user", "Name a number."),
        ("assistant", "seven"),
    ]
    assert (told.group, told.end, told.reward, told.correct, told.source) == (4, "answered", 0.0, False, "policy")
    assert told.mask == [1] * len(told.completion_ids)
    assert told.prompt_ids == engine.codec.prompt("Be brief.", "Name a number.")


def test_a_turn_that_cannot_be_had_is_unavailable():
    def broken(text):
        raise RuntimeError("no engine")

    with echo_player(scripted(broken)) as player:
        told = asyncio.run(player.reply("Name a number."))
    assert (told.end, told.available) == ("unavailable", False)
    assert "no engine" in told.error
