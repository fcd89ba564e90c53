"""What goes wrong in one episode stays in it, and what is cancelled leaves nothing behind."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
from typing import Any

import pytest
from places import SUPPORT
from scripted_engine import EchoEnv, ScriptedEngine, call, echo_player, first_times, math_tool, scripted

from rstar2_env.core.status import ToolStatus
from rstar2_env.rollout import EpisodeRequest, RolloutError, SamplingParams
from rstar2_env.testing import StubSandbox

pytestmark = pytest.mark.usefixtures("no_thread_left")


def test_a_tool_that_fails_by_our_own_fault_makes_its_episode_unavailable_and_no_other() -> None:
    sandbox = StubSandbox(lambda job: ToolStatus.UNAVAILABLE if "bad" in job.code else "42")

    code = first_times(call("bad"), 1, call("good"))
    engine = scripted(lambda text: "<answer>\\boxed{42}</answer>" if "tool_response>\n42" in text else code(text))
    with echo_player(engine, math_tool(sandbox=sandbox)) as player:
        episodes = player.play([EpisodeRequest(seed=1) for _ in range(4)])
    assert sorted(e.end for e in episodes) == ["answered"] * 3 + ["unavailable"]
    lost = next(e for e in episodes if not e.available)
    assert lost.statuses == [ToolStatus.UNAVAILABLE]
    assert (lost.tool_calls, lost.error_share) == (0, None)


class FailingEngine(ScriptedEngine):
    """Fails wherever the conversation says so."""

    async def generate(self, ids: Any, params: SamplingParams) -> Any:
        if self.codec.tokenizer.decode(ids).count("doomed"):
            raise ConnectionError("the engine is gone")
        return await super().generate(ids, params)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("make", "no environment today"),
        ("reset", "no reset today"),
        ("step", "the step failed"),
        ("engine", "the engine is gone"),
    ],
)
def test_an_exception_ends_its_own_episode_alone_and_keeps_its_traceback(where: str, message: str) -> None:
    made = 0

    def make_env() -> EchoEnv:
        nonlocal made
        made += 1
        return EchoEnv(trouble=where if made == 1 else "")

    policy = first_times({"step": "boom", "engine": "doomed"}.get(where, "stop"), 1)
    engine = FailingEngine(scripted(policy).codec, policy)
    with echo_player(engine, make_env) as player:
        episodes = player.play([EpisodeRequest(seed=i) for i in range(5)])
        assert sorted(e.end for e in episodes) == ["terminated"] * 4 + ["unavailable"]
        lost = next(e for e in episodes if not e.available)
        assert lost.error is not None
        assert message in lost.error
        assert "Traceback" in lost.error
        assert (lost.reward, lost.correct) == (0.0, False)
        again = player.play([EpisodeRequest(seed=9) for _ in range(5)])
        assert all(e.available for e in again)
    assert all(env.closed == 1 for env in EchoEnv.made)


def test_more_failures_than_allowed_raise_with_a_cause_and_every_episode() -> None:
    with echo_player(scripted(first_times("boom", 3)), max_failed=0.25) as player:
        with pytest.raises(RolloutError, match="the step failed") as caught:
            player.play([EpisodeRequest(seed=i) for i in range(8)])
        assert "3 of 8 episodes" in str(caught.value)
        assert len(caught.value.episodes) == 8
    with echo_player(scripted(first_times("boom", 2)), max_failed=0.25) as player:
        assert len(player.play([EpisodeRequest(seed=i) for i in range(8)])) == 8


def test_an_environment_that_cannot_be_closed_disturbs_nobody() -> None:
    with echo_player(scripted(first_times("boom", 1)), lambda: EchoEnv(trouble="close")) as player:
        episodes = player.play([EpisodeRequest(seed=i) for i in range(3)])
    assert sum(e.available for e in episodes) == 2
    assert all(env.closed for env in EchoEnv.made)


def test_environments_are_reused_and_one_that_failed_is_not() -> None:
    engine = scripted(lambda text: "boom" if len(engine.calls) == 2 else "stop")
    with echo_player(engine, max_in_flight=1) as player:
        player.play([EpisodeRequest(seed=i) for i in range(4)])
        assert len(EchoEnv.made) == 2
        assert [len(env.resets) for env in EchoEnv.made] == [2, 2]
    assert [env.closed for env in EchoEnv.made] == [1, 1]


def test_cancelling_leaves_no_thread_and_no_environment_behind() -> None:
    engine = scripted(first_times("hang", 3, "go"), delay_s=0.002)
    player = echo_player(engine, lambda: EchoEnv(turns=10**6), max_in_flight=6)

    async def give_up() -> None:
        playing = asyncio.create_task(player.aplay([EpisodeRequest(seed=i) for i in range(12)]))
        while sum(env.inside for env in EchoEnv.made) < 3:
            await asyncio.sleep(0.001)
        playing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await playing
        assert engine.in_flight == 0, "a request of the engine goes on"
        assert len(asyncio.all_tasks()) == 1, "an episode goes on"

    asyncio.run(give_up())
    stuck = [env for env in EchoEnv.made if env.inside]
    assert stuck
    assert not any(env.closed for env in stuck), "an environment was closed while a thread was inside"
    EchoEnv.gate.set()
    player.close()
    assert all(env.closed == 1 for env in EchoEnv.made)
    assert not any(env.closed_inside for env in EchoEnv.made)


def test_an_environment_that_is_just_being_made_when_all_is_cancelled_is_closed() -> None:
    making, go = threading.Event(), threading.Event()

    def slow() -> EchoEnv:
        making.set()
        assert go.wait(30)
        return EchoEnv()

    player = echo_player(scripted(lambda text: "stop"), slow)

    async def give_up() -> None:
        playing = asyncio.create_task(player.aplay([EpisodeRequest()]))
        await asyncio.to_thread(making.wait, 30)
        playing.cancel()
        await asyncio.gather(playing, return_exceptions=True)

    asyncio.run(give_up())
    go.set()
    player.close()
    assert [env.closed for env in EchoEnv.made] == [1]


_INTERRUPTED = """
import sys, threading
sys.path.insert(0, {folder!r})
from scripted_engine import EchoEnv, scripted
from rstar2_env.rollout import EpisodeRequest, Player, SamplingParams

EchoEnv.gate.wait = lambda timeout: print("inside", flush=True) or threading.Event().wait(2)
engine = scripted(lambda text: "hang")
with Player(lambda: EchoEnv(turns=10**6), engine, engine.codec, sampling=SamplingParams(1)) as player:
    {play}
"""


_IN_A_NOTEBOOK = """import asyncio
    async def notebook(): player.play([EpisodeRequest()] * 3)
    asyncio.new_event_loop().run_until_complete(notebook())"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "play",
    [
        "player.play([EpisodeRequest()] * 3)",
        _IN_A_NOTEBOOK,
    ],
    ids=["script", "notebook"],
)
def test_an_interrupt_from_the_keyboard_ends_the_program(play: str) -> None:
    program = _INTERRUPTED.format(folder=str(SUPPORT), play=play)
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None
            # Three threads may write into one line.
            assert child.stdout.readline().startswith(b"inside")
            child.send_signal(signal.SIGINT)
            _, errors = child.communicate(timeout=400)
        finally:
            child.kill()
    assert b"KeyboardInterrupt" in errors
    assert child.returncode != 0
