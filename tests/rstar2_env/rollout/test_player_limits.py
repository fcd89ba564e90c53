"""Time budgets, stop strings, places on an engine, and groups that need no more."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from group_playing import aplay_groups, play_groups
from scripted_engine import EchoEnv, ScriptedEngine, call, echo_player, first_times, math_tool, scripted, turns_of

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.rollout import Budget, EpisodeRequest, Generation, RolloutError, SamplingParams, Seat
from rstar2_env.rollout.engine import TurnTimeoutError
from rstar2_env.testing import StubSandbox

pytestmark = pytest.mark.usefixtures("no_thread_left")

LIMIT = Budget(wall_s=0.5)


class SlowEngine(ScriptedEngine):
    """Takes forever once the conversation says so."""

    async def generate(self, ids: Sequence[int], params: SamplingParams) -> Generation:
        if "slow" in self.codec.tokenizer.decode(ids):
            self.in_flight += 1
            try:
                await asyncio.sleep(1000)
            finally:
                self.in_flight -= 1
        return await super().generate(ids, params)


def test_a_generation_that_takes_too_long_is_cancelled_and_its_episode_ends_for_time() -> None:
    engine = SlowEngine(scripted(lambda text: "").codec, first_times("slow", 1))
    with echo_player(engine, budget=LIMIT) as player:
        episodes = player.play([EpisodeRequest(seed=i) for i in range(4)])
        assert sorted(e.end for e in episodes) == ["terminated"] * 3 + ["time"]
        (late,) = [e for e in episodes if e.end == "time"]
        assert engine.in_flight == 0
        assert (late.turns, late.reward, late.correct, late.error, late.available) == (1, 0.25, False, None, True)
        assert late.mask
        assert all(late.mask), "what nobody answered is left out"
        assert [m.role for m in late.messages] == ["user", "assistant"]
        assert len(EchoEnv.made) == 4
        player.play([EpisodeRequest(seed=i) for i in range(4)])
        assert len(EchoEnv.made) == 4, "nobody was inside: the environment serves again"


def test_a_step_that_takes_too_long_is_abandoned_and_its_environment_never_used_again() -> None:
    engine = scripted(first_times("hang", 2))
    with echo_player(engine, budget=LIMIT, max_in_flight=2) as player:
        episodes = player.play([EpisodeRequest(seed=i) for i in range(6)])
        assert [e.end for e in episodes].count("time") == 2
        assert [e.end for e in episodes].count("terminated") == 4, "an abandoned step takes no thread from the others"
        stuck = [env for env in EchoEnv.made if env.inside]
        assert len(stuck) == 2
        assert not any(env.closed for env in stuck)
        assert all(len(env.resets) == 1 for env in stuck)
        EchoEnv.gate.set()
    assert all(env.closed == 1 and not env.closed_inside for env in EchoEnv.made)
    late = next(e for e in episodes if e.end == "time")
    assert (late.messages[-1].content, late.mask[-1], late.turns) == ("hang", 1, 1)


def test_a_reset_that_takes_too_long_is_our_failure() -> None:
    class Stuck(EchoEnv):
        def reset(self, **options: Any) -> Any:
            self.gate.wait(30)
            return super().reset(**options)

    with echo_player(scripted(lambda text: "stop"), Stuck, budget=Budget(wall_s=0.2), max_failed=1) as player:
        (episode,) = player.play([EpisodeRequest()])
        EchoEnv.gate.set()
    assert episode.failed
    assert "wall_s=0.2" in str(episode.error)


def test_a_timeout_of_the_environments_own_is_a_failure_and_not_the_budgets() -> None:
    class Impatient(EchoEnv):
        def step(self, action: str) -> Any:
            raise TimeoutError("the service did not answer")

    with (
        echo_player(scripted(lambda text: "x"), Impatient, budget=Budget(wall_s=60)) as player,
        pytest.raises(RolloutError, match="the service did not answer"),
    ):
        player.play([EpisodeRequest()])


class Doorkeeper(ScriptedEngine):
    """Knows of episodes, and lets none in for a while."""

    seats: list[str]

    @asynccontextmanager
    async def episode(self, prompt_tokens: int, max_tokens: int) -> AsyncIterator[Seat]:
        await asyncio.sleep(0.6)
        self.seats.append(f"in {prompt_tokens > 0} {max_tokens}")
        try:
            yield self
        finally:
            self.seats.append("out")


@pytest.mark.parametrize("turn", ["stop", "boom", "hang"])
def test_an_engine_learns_of_an_episode_and_of_its_end_and_waiting_for_it_costs_no_time(turn: str) -> None:
    engine = Doorkeeper(scripted(lambda text: "").codec, lambda text: turn)
    engine.seats = []
    with echo_player(engine, budget=Budget(tokens=77, wall_s=0.5), max_failed=1) as player:
        (episode,) = player.play([EpisodeRequest(seed=1)])
        EchoEnv.gate.set()
    assert engine.seats == ["in True 77", "out"]
    assert episode.end == {"stop": "terminated", "boom": "unavailable", "hang": "time"}[turn]


def test_the_dialects_stop_strings_reach_the_engine() -> None:
    engine = scripted(lambda text: call("1"))
    sampling = SamplingParams(1, stop=("END",))
    with echo_player(engine, math_tool(sandbox=StubSandbox(), dialect="fenced"), sampling=sampling) as player:
        player.play([EpisodeRequest(seed=1)])
    assert engine.calls[0][1].stop == ("END", "\n```\n", "```output")


def test_a_time_that_is_no_time_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="wall_s"):
        Budget(wall_s=0)


def test_a_settled_group_is_cancelled_and_the_others_go_on() -> None:
    engine = scripted(lambda text: "hang" if len(engine.generations) % 2 else "stop")
    asked: list[list[bool]] = []

    def settled(group: Sequence[Episode | None]) -> bool:
        asked.append([episode is not None for episode in group])
        return len(group) == 4 and sum(episode is not None for episode in group) == 2

    with echo_player(engine, lambda: EchoEnv(turns=3)) as player:
        episodes = play_groups(player, 1, 4, settled)
        EchoEnv.gate.set()
    assert sorted(e.end for e in episodes) == ["cancelled", "cancelled", "terminated", "terminated"]
    assert max(sum(flags) for flags in asked) == 2, "a settled group is not asked again"
    for episode in episodes:
        assert episode.available != episode.cancelled
        assert not episode.failed
    assert all(env.closed == 1 for env in EchoEnv.made)


def test_a_cancelled_episode_that_still_waited_for_its_turn_is_marked_too() -> None:
    engine = scripted(lambda text: "stop")
    with echo_player(engine, max_in_flight=1) as player:
        episodes = play_groups(player, 2, 4, lambda group: group[0] is not None)
    assert [e.end for e in episodes] == ["terminated", *["cancelled"] * 3] * 2
    assert len(engine.calls) == 2


def test_cancelled_episodes_are_no_share_of_the_failures() -> None:
    engine = scripted(first_times("boom", 1))
    with (
        echo_player(engine, max_in_flight=1, max_failed=0.4) as player,
        pytest.raises(RolloutError, match="1 of 10"),
    ):
        play_groups(player, 1, 10, lambda group: sum(e is not None for e in group) == 2)


def test_a_selector_that_fails_stops_the_rollout() -> None:
    def settled(group: Sequence[Episode | None]) -> bool:
        raise ZeroDivisionError("a selector with a mistake")

    with echo_player(scripted(lambda text: "stop")) as player, pytest.raises(ZeroDivisionError):
        play_groups(player, 1, 3, settled)


def test_cancelling_while_groups_settle_cancels_everything() -> None:
    engine = scripted(first_times("stop", 4, "hang"))
    player = echo_player(engine)

    async def give_up() -> None:
        playing = asyncio.create_task(aplay_groups(player, 2, 8, lambda group: group[0] is not None))
        begin = time.monotonic()
        while sum(env.inside for env in EchoEnv.made) < 3 and time.monotonic() < begin + 60:
            await asyncio.sleep(0.001)
        playing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await playing
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(give_up())
    EchoEnv.gate.set()
    player.close()
    assert all(env.closed == 1 for env in EchoEnv.made)


class ShortEngine(ScriptedEngine):
    """Accepts conversations of a length, as vLLM does, and refuses longer ones."""

    max_model_len = 0

    async def generate(self, ids: Sequence[int], params: SamplingParams) -> Generation:
        assert len(ids) + params.max_tokens <= self.max_model_len
        return await super().generate(ids, params)


@pytest.mark.parametrize("room", [1, 7, 8, 9, 23, 24, 25, 59])
def test_an_episode_that_meets_the_engines_longest_conversation_ends_as_tokens(room: int) -> None:
    codec = scripted(lambda text: "").codec
    with echo_player(ScriptedEngine(codec, lambda text: "on")) as player:
        (whole,) = player.play([EpisodeRequest(seed=1)])
    engine = ShortEngine(codec, lambda text: "on")
    engine.max_model_len = len(whole.prompt_ids) + room
    with echo_player(engine, budget=Budget(tokens=4096)) as player:
        (episode,) = player.play([EpisodeRequest(seed=1)])
    assert (episode.end, episode.error, episode.available) == ("tokens", None, True)
    assert 0 < len(episode.completion_ids) <= room < len(whole.completion_ids)
    assert episode.completion_ids == whole.completion_ids[: len(episode.completion_ids)]
    assert episode.mask[-1] == 1


def test_a_prompt_that_the_engine_cannot_hold_says_so() -> None:
    engine = ShortEngine(scripted(lambda text: "").codec, lambda text: "on")
    engine.max_model_len = 5
    with (
        echo_player(engine) as player,
        pytest.raises(
            RolloutError, match=r"The prompt has \d+ tokens, but the engine accepts conversations of at most 5"
        ),
    ):
        player.play([EpisodeRequest(seed=1)])


class LateEngine(ScriptedEngine):
    """Gives up the second turn of an episode, which took too long."""

    async def generate(self, ids: Sequence[int], params: SamplingParams) -> Generation:
        if turns_of(str(self.codec.tokenizer.decode(ids))):
            raise TurnTimeoutError("no answer within 600 s")
        return await super().generate(ids, params)


def test_a_turn_that_took_longer_than_the_engine_allows_makes_its_episode_unavailable_instead_of_cutting_it() -> None:
    engine = LateEngine(scripted(lambda text: "").codec, lambda text: "on")
    with echo_player(engine, max_failed=1.0) as player:
        (episode,) = player.play([EpisodeRequest(seed=1)])
    assert (episode.end, episode.available) == ("unavailable", False)
    assert "no answer within 600 s" in str(episode.error)
