"""Episodes as coroutines: any environment of text plays, token by token as the engine wrote."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
import torch
from chat_families import FAMILIES, Family
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_engine import EchoEnv, call, echo_player, math_tool, scripted, turns_of
from tiny_models import tiny_qwen3

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.status import ToolStatus
from rstar2_env.rollout import Budget, EpisodeRequest, Player, SamplingParams, TransformersEngine
from rstar2_env.testing import StubSandbox

pytestmark = pytest.mark.usefixtures("no_thread_left")


def test_the_logprobs_of_an_episode_are_those_of_one_forward_pass_over_it() -> None:
    codec = scripted(lambda text: "").codec
    model = tiny_qwen3(vocab_size=len(codec.tokenizer), max_position_embeddings=2048)
    engine = TransformersEngine(model, max_rows=5)
    sampling = SamplingParams(1, temperature=0.8)
    requests = [EpisodeRequest(group=i, seed=i, sampling_seed=i) for i in range(12)]
    with Player(lambda: EchoEnv(turns=3), engine, codec, sampling=sampling, budget=Budget(turn_tokens=9)) as player:
        episodes = player.play(requests)
    engine.close()
    for episode in episodes:
        ids = torch.tensor([episode.prompt_ids + episode.completion_ids])
        with torch.no_grad():
            logits = model(ids).logits[0, len(episode.prompt_ids) - 1 : -1] / 0.8
        logprobs = logits.log_softmax(-1).gather(1, torch.tensor(episode.completion_ids)[:, None])[:, 0]
        mask = torch.tensor(episode.mask)
        assert episode.turns == 3
        assert torch.allclose(torch.tensor(episode.logprobs), logprobs * mask, atol=1e-4)


def test_any_environment_of_text_plays() -> None:
    engine = scripted(lambda text: "stop" if turns_of(text) == 2 else f"go {turns_of(text)}")
    with echo_player(engine) as player:
        episode, cut = player.play([EpisodeRequest(group=3, seed=7), EpisodeRequest(seed=8)])
    assert (episode.group, episode.seed, episode.problem_id) == (3, 7, "")
    assert [m.role for m in episode.messages] == ["user", "assistant", "user", "assistant", "user", "assistant"]
    assert [m.content for m in episode.messages if m.role == "assistant"] == ["go 0", "go 1", "stop"]
    assert (episode.end, episode.turns, episode.reward, episode.correct) == ("terminated", 3, 1.75, True)
    assert (episode.statuses, episode.injected, episode.answer, episode.error) == ([], [], None, None)
    assert cut.end == "terminated"


def runs(ones: list[int]) -> list[tuple[int, int]]:
    """Where each run of ones begins and ends."""
    edges = [at for at in range(len(ones) + 1) if (at and ones[at - 1]) != (at < len(ones) and ones[at])]
    return list(zip(edges[::2], edges[1::2], strict=True))


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
@given(
    words=st.lists(st.sampled_from(["on", "boom", "hang", "a longer turn of some words"]), min_size=1, max_size=5),
    tokens=st.integers(5, 400),
    turn_tokens=st.none() | st.integers(1, 12),
)
@settings(max_examples=25, deadline=None)
def test_the_turns_hold_exactly_the_policys_tokens_its_calls_and_the_rewards(
    family: Family, words: list[str], tokens: int, turn_tokens: int | None
) -> None:
    said = iter([*words, *["stop"] * 99])
    engine = scripted(lambda text: next(said), family)
    limits = Budget(tokens=tokens, turn_tokens=turn_tokens, wall_s=0.05 if "hang" in words else None)
    EchoEnv.gate.clear()
    with echo_player(engine, budget=limits, max_failed=1) as player:
        (episode,) = player.play([EpisodeRequest(seed=0)])
        EchoEnv.gate.set()
    spans = [(turn.start, turn.stop) for turn in episode.steps]
    assert spans == runs(episode.mask)
    assert len(episode.steps) == episode.turns
    assert [turn.version for turn in episode.steps] == list(range(episode.turns))
    assert sum(turn.reward for turn in episode.steps) == pytest.approx(episode.reward)
    assert episode.end != "unavailable" or episode.reward == 0
    texts = [message.content for message in episode.messages]
    said_at = [at for at, message in enumerate(episode.messages) if message.role == "assistant"]
    assert [turn.observation for turn in episode.steps] == [texts[at - 1] for at in said_at]
    for (start, stop), at in zip(spans, said_at, strict=True):
        assert engine.codec.text(episode.completion_ids[start:stop]) == texts[at]


def test_the_turns_of_an_episode_with_tools_hold_its_statuses_and_the_environments_name() -> None:
    said = iter([call("1") + call("2"), call("3"), "<answer>\\boxed{42}</answer>"])
    engine = scripted(lambda text: next(said))
    with echo_player(engine, math_tool(sandbox=StubSandbox("x"))) as player:
        (episode,) = player.play([EpisodeRequest(seed=0)])
    assert [turn.statuses for turn in episode.steps] == [[ToolStatus.OK] * 2, [ToolStatus.OK], []]
    assert [status for turn in episode.steps for status in turn.statuses] == episode.statuses
    assert [turn.reward for turn in episode.steps] == [0.0, 0.0, 1.0]
    assert [len(turn.info["tool_calls"]) for turn in episode.steps] == [2, 1, 0]
    assert episode.task == "rstar2/MathTool-v0"


def test_an_environment_that_truncates_without_saying_why_is_truncated() -> None:
    engine = scripted(lambda text: "on")
    with echo_player(engine, lambda: EchoEnv(turns=2)) as player:
        episode = player.play([EpisodeRequest(seed=0)])[0]
    assert (episode.end, episode.turns, episode.reward, episode.correct) == ("truncated", 2, 0.5, True)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.name + "".join(f"-{o}" for o in f.options))
def test_the_mask_is_one_on_exactly_the_ids_that_the_engine_made(family: Family) -> None:
    hostile = f"{family.end}{family.opens}user\n"
    engine = scripted(lambda text: family.head + ("stop" if turns_of(text) == 2 else f"say {hostile}"), family)
    with echo_player(engine) as player:
        episode = player.play([EpisodeRequest(seed=7)])[0]
    ids = episode.completion_ids
    assert len(ids) == len(episode.mask) == len(episode.logprobs)
    assert [i for i, m in zip(ids, episode.mask, strict=True) if m] == [i for g in engine.generations for i in g.ids]
    assert [p for p, m in zip(episode.logprobs, episode.mask, strict=True) if m] == [
        p for g in engine.generations for p in g.logprobs
    ]
    assert all(p == 0 for p, m in zip(episode.logprobs, episode.mask, strict=True) if not m)
    # Each turn continued exactly the ids before it: nothing was tokenized again.
    joined = episode.prompt_ids + ids
    for asked, _ in engine.calls:
        assert joined[: len(asked)] == asked
    # The environment showed the hostile text; the special tokens of what it showed are the template's own.
    codec = engine.codec
    benign = codec.suffix("user", "x", ended=True)
    for (before, _), (after, _), generation in zip(engine.calls, engine.calls[1:], engine.generations, strict=False):
        suffix = after[len(before) + len(generation.ids) :]
        assert codec._guarded_in(suffix) == codec._guarded_in(benign)
        assert "heard" in str(codec.tokenizer.decode(suffix))


def test_a_math_problem_is_played_with_its_tool() -> None:
    script = [call("print(1/0)"), call("print(6*7)") + call("x = 1"), "<answer>\\boxed{42}</answer>"]
    engine = scripted(lambda text: script[text.count("<|im_start|>assistant") - 1])
    with echo_player(engine, math_tool()) as player:
        episode = player.play([EpisodeRequest(seed=1)])[0]
    assert episode.error is None
    assert episode.statuses == [ToolStatus.EXCEPTION, ToolStatus.OK, ToolStatus.EMPTY]
    assert (episode.end, episode.turns, episode.reward, episode.correct) == ("answered", 3, 1.0, True)
    assert (episode.answer, episode.answer_tags) == ("42", 1)
    assert episode.problem_id
    assert episode.error_share == pytest.approx(1 / 3)
    assert episode.messages[0].role == "system"
    assert "ZeroDivisionError" in episode.messages[3].content


@pytest.mark.parametrize(
    ("turn", "options", "end", "turns"),
    [
        ("I give up.", {}, "no_answer", 1),
        ("<answer>\\boxed{41}</answer>", {}, "answered", 1),
        (call("1"), {"max_turns": 2}, "turns", 2),
    ],
)
def test_the_environments_own_ends_are_noted(turn: str, options: dict[str, Any], end: str, turns: int) -> None:
    engine = scripted(lambda text: turn)
    with echo_player(engine, math_tool(sandbox=StubSandbox(), **options)) as player:
        episode = player.play([EpisodeRequest(seed=1)])[0]
    assert (episode.end, episode.turns, episode.reward, episode.correct) == (end, turns, 0.0, False)


def test_an_episode_never_has_more_tokens_than_its_budget() -> None:
    for tokens in range(1, 60):
        engine = scripted(lambda text: "some words to say")
        with echo_player(engine, budget=Budget(tokens=tokens)) as player:
            episode = player.play([EpisodeRequest(seed=0)])[0]
        assert len(episode.completion_ids) <= tokens
        assert episode.completion_ids
        assert all(params.max_tokens <= tokens for _, params in engine.calls)
        assert episode.mask[-1] == 1, "what nobody answered is left out"
        assert episode.messages[-1].role == "assistant"
        if tokens < 40:
            assert (episode.end, episode.correct) == ("tokens", False)


def test_a_turn_that_reaches_its_own_budget_is_closed_by_the_template_and_goes_on() -> None:
    engine = scripted(lambda text: "a turn that is too long" if turns_of(text) == 0 else "stop")
    with echo_player(engine, budget=Budget(turn_tokens=4)) as player:
        episode = player.play([EpisodeRequest(seed=0)])[0]
    end = engine.codec.stop_ids[0]
    assert [params.max_tokens for _, params in engine.calls] == [4, 4]
    assert episode.mask[:5] == [1, 1, 1, 1, 0]
    assert episode.completion_ids[4] == end
    assert episode.end == "terminated"


def test_the_budget_of_turns_ends_an_environment_that_has_none() -> None:
    engine = scripted(lambda text: "on")
    with echo_player(engine, lambda: EchoEnv(turns=10**6), budget=Budget(turns=3)) as player:
        episode = player.play([EpisodeRequest(seed=0)])[0]
    assert (episode.end, episode.turns) == ("turns", 3)


def test_a_budget_that_nothing_fits_into_is_refused() -> None:
    for options in ({"tokens": 0}, {"turn_tokens": 0}, {"turns": 0}):
        with pytest.raises(ConfigurationError, match="Budget"):
            Budget(**options)
    with pytest.raises(ConfigurationError, match="max_in_flight"):
        echo_player(scripted(lambda text: ""), max_in_flight=0)


def test_no_more_episodes_are_in_flight_than_allowed() -> None:
    seen = []
    engine = scripted(lambda text: seen.append(engine.in_flight) or "stop", delay_s=0.005)
    with echo_player(engine, max_in_flight=3) as player:
        player.play([EpisodeRequest(seed=i) for i in range(12)])
    assert len(EchoEnv.made) <= 3
    assert max(seen) <= 2  # beside the one that speaks


def test_a_group_starts_from_the_same_reset_and_draws_differently() -> None:
    engine = scripted(lambda text: "stop" if turns_of(text) else "go")
    requests = [
        EpisodeRequest(group=g, seed=100 + g, options={"problem_id": str(g)}, sampling_seed=10 * g + i)
        for g in range(3)
        for i in range(4)
    ]
    with echo_player(engine) as player:
        episodes = player.play(requests)
        again = player.play(requests)
    assert [e.group for e in episodes] == [r.group for r in requests]
    for group in range(3):
        assert len({e.messages[0].content for e in episodes if e.group == group}) == 1
    assert len({e.messages[0].content for e in episodes}) == 3
    assert [e.prompt_ids for e in episodes] == [e.prompt_ids for e in again]
    seeds = [params.seed for _, params in engine.calls[:24]]
    assert None not in seeds
    assert len(set(seeds)) == 24
    assert sorted(seeds) == sorted(params.seed for _, params in engine.calls[24:])


def test_options_reach_the_reset_and_no_options_are_none() -> None:
    engine = scripted(lambda text: "stop")
    with echo_player(engine, max_in_flight=1) as player:
        player.play([EpisodeRequest(options={"problem_id": "x"}), EpisodeRequest()])
    assert EchoEnv.made[0].resets == [{"problem_id": "x"}, None]
    assert [params.seed for _, params in engine.calls] == [None, None]


def test_the_policy_is_stopped_by_the_chats_ends_and_by_further_ones() -> None:
    engine = scripted(lambda text: "stop")
    with echo_player(engine, sampling=SamplingParams(1, temperature=0.3, stop_ids=(5,), stop=("x",))) as player:
        player.play([EpisodeRequest()])
        player.play([EpisodeRequest()], sampling=SamplingParams(1, temperature=0.0))
    (_, first), (_, second) = engine.calls
    assert set(first.stop_ids) == {5, *engine.codec.stop_ids}
    assert (first.temperature, first.stop) == (0.3, ("x",))
    assert (second.temperature, set(second.stop_ids)) == (0.0, set(engine.codec.stop_ids))


def test_an_episode_keeps_the_version_of_its_first_turn() -> None:
    engine = scripted(lambda text: "stop" if turns_of(text) == 2 else "go")
    engine.update_weights(40)
    with echo_player(engine) as player:
        assert player.play([EpisodeRequest()])[0].policy_version == 40
        assert player.play([EpisodeRequest()])[0].policy_version == 43


def test_it_plays_where_a_loop_runs_already() -> None:
    engine = scripted(lambda text: "stop")

    async def notebook() -> list[Any]:
        return player.play([EpisodeRequest(seed=i) for i in range(3)])

    with echo_player(engine) as player:
        assert [e.end for e in asyncio.run(notebook())] == ["terminated"] * 3


def test_nothing_to_play_is_no_failure() -> None:
    with echo_player(scripted(lambda text: "stop")) as player:
        assert player.play([]) == []


def test_hundreds_of_episodes_wait_for_their_tools_at_once() -> None:
    sandbox = StubSandbox("42", wait_s=0.5)
    engine = scripted(lambda text: "<answer>\\boxed{42}</answer>" if "tool_response>\n42" in text else call("6*7"))
    with echo_player(engine, math_tool(sandbox=sandbox)) as player:
        start = time.monotonic()
        episodes = player.play([EpisodeRequest(seed=i) for i in range(512)])
        elapsed = time.monotonic() - start
    assert sum(e.correct for e in episodes) == 512
    assert elapsed < 100, "one after the other they take 256 s; together, half a second and the work around it"


class ShowsNothing(EchoEnv):
    """Goes on without a word."""

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        return "", *super().step(action)[1:]


def test_an_empty_text_in_the_middle_is_a_message_as_its_ids_are_there_and_at_the_end_is_none() -> None:
    engine = scripted(lambda text: "stop" if text.count("<|im_start|>assistant") == 2 else "on")
    with echo_player(engine, ShowsNothing) as player:
        episode = player.play([EpisodeRequest(seed=1)])[0]
    assert [(message.role, message.content) for message in episode.messages[1:]] == [
        ("assistant", "on"),
        ("user", ""),
        ("assistant", "stop"),
    ]
    assert 0 in episode.mask
