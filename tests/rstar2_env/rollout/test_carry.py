"""An episode that is cancelled and goes on later: nothing is generated twice, and its turns keep their versions."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest
from scripted_engine import EchoEnv, ScriptedEngine, echo_player, scripted, turns_of

from rstar2_env.core.episode import Episode
from rstar2_env.rollout import Generation, Player, SamplingParams

pytestmark = pytest.mark.usefixtures("no_thread_left")


class Stops(ScriptedEngine):
    """Takes forever for the third turn, until it is told to go on; its weights have a version."""

    stuck = True
    weights = 5
    asked = 0

    async def generate(self, ids: Sequence[int], params: SamplingParams) -> Generation:
        if self.stuck and turns_of(str(self.codec.tokenizer.decode(ids))) == 2:
            await asyncio.sleep(1000)
        self.asked += 1
        self.version = self.weights
        return await super().generate(ids, params)


def begin(player: Player, *, when: Any) -> Episode:
    """Play an episode until something is so, and cancel it."""
    record = Episode(group=3, seed=7)

    async def play() -> None:
        task = asyncio.create_task(player.carry(record, sampling_seed=11))
        async with asyncio.timeout(60):
            while not when(record):
                await asyncio.sleep(0.005)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    asyncio.run(play())
    return record


def go_on(player: Player, begun: Episode) -> Episode:
    return asyncio.run(player.carry(Episode(group=3, seed=7), sampling_seed=11, begun=begun))


def engine_of() -> Stops:
    return Stops(scripted(lambda text: "").codec, lambda text: f"turn {turns_of(text)}")


def test_it_goes_on_where_it_was_left_and_every_turn_says_which_weights_wrote_it() -> None:
    engine = engine_of()
    with echo_player(engine) as player:
        record = begin(player, when=lambda record: record.turns == 2 and not record.mask[-1])
        assert (record.turns, record.end) == (2, "")
        engine.stuck, engine.weights = False, 6
        episode = go_on(player, record)
        assert engine.asked == 5
        unbroken = asyncio.run(player.episode(group=3, seed=7, sampling_seed=11))
    assert [turn.version for turn in episode.steps] == [5, 5, 6, 6, 6]
    assert episode.policy_version == 5
    for name in ("prompt_ids", "completion_ids", "mask", "logprobs", "messages", "reward", "end"):
        assert getattr(episode, name) == getattr(unbroken, name), name


def test_a_turn_whose_tool_still_ran_is_given_to_the_environment_again() -> None:
    said = itertools.count()
    engine = Stops(scripted(lambda text: "").codec, lambda text: "hang" if next(said) == 1 else "stop")
    engine.policy = lambda text: "hang" if turns_of(text) == 1 else "on"
    with echo_player(engine) as player:
        record = begin(player, when=lambda record: record.turns == 2)
        assert record.mask[-1] == 1, "nothing has answered it"
        EchoEnv.gate.set()
        engine.stuck = False
        episode = go_on(player, record)
    assert engine.asked == 5
    assert (episode.turns, episode.end) == (5, "truncated")


def test_an_environment_that_shows_something_else_begins_anew() -> None:
    class Moody(EchoEnv):
        count = itertools.count()

        def step(self, action: str) -> Any:
            text, *rest = super().step(action)
            return f"{text} for the {next(self.count)}th time", *rest

    engine = engine_of()
    with echo_player(engine, Moody) as player:
        record = begin(player, when=lambda record: record.turns == 2 and not record.mask[-1])
        engine.stuck, engine.weights = False, 6
        episode = go_on(player, record)
    assert [turn.version for turn in episode.steps] == [6] * 5
    assert sum(turn.tokens for turn in episode.steps) == episode.policy_tokens
    assert (episode.end, episode.error) == ("truncated", None)


def test_one_that_never_got_a_turn_simply_begins() -> None:
    engine = engine_of()
    engine.stuck = False
    with echo_player(engine) as player:
        episode = go_on(player, Episode(group=3, seed=7))
    assert episode.turns == 5
