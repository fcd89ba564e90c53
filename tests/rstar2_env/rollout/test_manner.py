"""Manners of playing: in chunks, with the entropy of each turn, and with turns that are drawn from older weights."""

from __future__ import annotations

import asyncio
import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scripted_engine import echo_player, scripted, turns_of

from rstar2_env.core.errors import BranchError, ConfigurationError
from rstar2_env.core.manner import OPEN, Manner
from rstar2_env.core.turn import Turn
from rstar2_env.rollout import Generation
from rstar2_env.rollout.turns import turn_entropy

pytestmark = pytest.mark.usefixtures("no_thread_left")


def talker(text: str) -> str:
    return "stop" if turns_of(text) == 2 else f"go ahead and say a lot {turns_of(text)}"


def grown(player: Any, chunk: int) -> list[Any]:
    """An episode that is played chunk by chunk to its end, with all that it grew out of."""

    async def play() -> list[Any]:
        found = [await player.episode(group=4, seed=7, sampling_seed=1, manner=Manner(chunk=chunk))]
        while found[-1].end == OPEN:
            token = len(found[-1].completion_ids)
            found.append(await player.branch(found[-1], token, sampling_seed=2, manner=Manner(chunk=chunk)))
        return found

    return asyncio.run(play())


@pytest.mark.parametrize("chunk", [1, 3, 1000])
def test_an_episode_that_is_played_in_chunks_is_the_one_that_is_played_at_once(chunk: int) -> None:
    engine = scripted(talker)
    # What is said goes by all that was said before, so that a chunk goes on where the last one was cut.
    full = {turns: engine.codec.tokenizer.encode(talker("heard" * turns) + engine.end) for turns in range(3)}

    async def generate(ids: Any, params: Any) -> Generation:
        text = str(engine.codec.tokenizer.decode(ids))
        said = full[turns_of(text)]
        begun = next(n for n in range(len(said), -1, -1) if not n or list(ids[-n:]) == said[:n])
        rest = said[begun:][: params.max_tokens]
        return Generation(rest, [-0.5] * len(rest), "stop" if rest[-1] in params.stop_ids else "length", 0)

    engine.generate = generate  # type: ignore[method-assign]
    with echo_player(engine) as player:
        whole = asyncio.run(player.episode(group=4, seed=7, sampling_seed=1))
        parts = grown(player, chunk)
    last = parts[-1]
    assert (last.completion_ids, last.mask, last.logprobs) == (whole.completion_ids, whole.mask, whole.logprobs)
    assert (last.reward, last.end, last.turns) == (whole.reward, whole.end, whole.turns) == (1.75, "terminated", 3)
    assert [turn.start for turn in last.steps] == [turn.start for turn in whole.steps]
    for before, after in itertools.pairwise(parts):
        assert before.end == OPEN
        assert after.completion_ids[: len(before.completion_ids)] == before.completion_ids
        fresh = sum(after.mask) - sum(before.mask)
        assert 1 <= fresh <= chunk
        if after.end == OPEN and after.mask[-1]:  # cut within a turn
            assert fresh == chunk
    # A chunk ends where a turn does, too: then the environment has answered.
    if chunk == 1000:
        assert [part.turns for part in parts] == [1, 2, 3]
        assert parts[0].mask[-1] == 0


def test_an_open_episode_that_is_shown_something_else_cannot_be_gone_on_with() -> None:
    engine = scripted(talker)
    with echo_player(engine) as player:

        async def play() -> None:
            first = await player.episode(group=0, seed=7, sampling_seed=1, manner=Manner(chunk=1000))
            first.completion_ids[-3] += 1
            await player.branch(first, len(first.completion_ids), sampling_seed=2)

        with pytest.raises(BranchError, match="before turn 2"):
            asyncio.run(play())


def test_the_entropy_of_a_turn_is_a_sum_over_candidates_and_tokens() -> None:
    uniform = [math.log(0.1)] * 10
    twenty = Generation([1] * 20, [0.0] * 20, "stop", 0, [uniform] * 20)
    assert turn_entropy(twenty, 151_936) == pytest.approx(20 * math.log(10) / math.log(151_936))
    assert turn_entropy(replace(twenty, candidates=[[math.log(0.5), -math.inf]]), 4) == pytest.approx(0.25)
    assert turn_entropy(replace(twenty, candidates=[]), 4) is None


def test_an_engine_that_reports_no_candidates_is_refused() -> None:
    with (
        echo_player(scripted(talker)) as player,
        pytest.raises(ConfigurationError, match="10 most likely tokens, but the engine ScriptedEngine reports none"),
    ):
        player.check_manner(Manner(candidates=10))


def test_turns_come_from_older_weights_as_often_as_was_asked_for() -> None:
    newest, stale = scripted(lambda text: "go"), scripted(lambda text: "old")
    newest.version, stale.version = 1000, 0
    with echo_player(newest, lambda: _echo(400), stale_engine=stale) as player:
        player.check_manner(Manner(stale=0.3))
        episode, again = (
            asyncio.run(player.episode(seed=7, sampling_seed=5, manner=Manner(stale=0.3))) for _ in range(2)
        )
    drawn = [turn.stale for turn in episode.steps]
    assert drawn == [turn.stale for turn in again.steps]
    assert len(drawn) > 150
    assert np.mean(drawn) == pytest.approx(0.3, abs=3 * math.sqrt(0.3 * 0.7 / len(drawn)))
    # The version of a turn is that of the engine that drew it, and so are its words and its log-probabilities.
    for turn, message in zip(episode.steps, [m for m in episode.messages if m.role == "assistant"], strict=True):
        assert (message.content == "old") == turn.stale == (turn.version < 1000)


def test_without_an_engine_of_older_weights_there_is_no_stale_turn() -> None:
    with (
        echo_player(scripted(talker)) as player,
        pytest.raises(ConfigurationError, match="stale_engine"),
    ):
        player.check_manner(Manner(stale=0.5))


def test_a_turn_keeps_how_it_was_drawn_in_its_record_and_in_branches() -> None:
    turn = Turn(0, 3, entropy=0.25, stale=True)
    assert Turn.from_record(turn.record(""), "") == turn
    assert {"entropy", "stale"}.isdisjoint(Turn().record(""))
    newest, stale = scripted(lambda text: "go"), scripted(lambda text: "old")
    with echo_player(newest, lambda: _echo(6), stale_engine=stale) as player:

        async def play() -> Any:
            parent = await player.episode(seed=7, sampling_seed=5, manner=Manner(stale=0.5))
            parent.steps[0].entropy = 0.125
            return parent, await player.branch(parent, parent.steps[3].start, sampling_seed=9)

        parent, branch = asyncio.run(play())
    shared = [(turn.version, turn.stale, turn.entropy) for turn in parent.steps[:3]]
    assert [(turn.version, turn.stale, turn.entropy) for turn in branch.steps[:3]] == shared


def _echo(turns: int) -> Any:
    from scripted_engine import EchoEnv

    return EchoEnv(turns=turns)
