"""Engines, tools and graders that fail at random: every episode is accounted for, and nothing is left behind."""

from __future__ import annotations

import ctypes
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from group_playing import play_groups
from places import SUPPORT
from scripted_engine import ScriptedEngine, call, echo_player, scripted

from rstar2_env.core.episode import Episode
from rstar2_env.core.status import ToolStatus
from rstar2_env.env.grading import GoldGrader
from rstar2_env.env.tool_env import ToolEnv
from rstar2_env.problems import Problem
from rstar2_env.rollout import Budget, EpisodeRequest, Generation, Player, SamplingParams, Scheduler
from rstar2_env.sandbox import Job
from rstar2_env.testing import StubSandbox
from rstar2_env.tools import PythonTool
from rstar2_env.verification import Reason, Verdict

pytestmark = pytest.mark.usefixtures("no_thread_left")

SHARE = 0.1


class Chaos:
    """Decides at random what fails, and counts it."""

    def __init__(self, seed: int, share: float) -> None:
        self._rng, self._share, self._lock = random.Random(seed), share, threading.Lock()
        self.faults: Counter[str] = Counter()

    def strikes(self, what: str) -> str:
        """How it fails this time: ``"raise"``, ``"report"`` or, mostly, not at all."""
        with self._lock:
            if self._rng.random() >= self._share:
                return ""
            self.faults[what] += 1
            return self._rng.choice(["raise", "report"])


class ShakyEngine(ScriptedEngine):
    chaos: Chaos

    async def generate(self, ids: Sequence[int], params: SamplingParams) -> Generation:
        how = self.chaos.strikes("engine")
        if how == "raise":
            raise ConnectionError("the engine refused")
        generation = await super().generate(ids, params)
        if how == "report":
            raise ConnectionError("the engine fell over while it answered")
        return generation


class ShakyEnv(ToolEnv):
    """A problem with a tool and a grader that fail at random."""

    made: list[ShakyEnv] = []  # noqa: RUF012  # shared on purpose, and cleared by the test

    def __init__(self, chaos: Chaos) -> None:
        def answer(job: Job) -> ToolStatus | str:
            how = chaos.strikes("tool")
            if how == "raise":
                raise OSError("the sandbox fell over")
            return ToolStatus.UNAVAILABLE if how else "42"

        grade = GoldGrader()

        def grader(problem: Problem, text: str) -> Verdict:
            how = chaos.strikes("grader")
            if how == "raise":
                raise OSError("the grader fell over")
            return Verdict(False, Reason.UNAVAILABLE) if how else grade(problem, text)

        problems = [{"id": str(i), "question": f"6*7? ({i})", "answer": "42"} for i in range(50)]
        super().__init__(problems=problems, tools=[PythonTool(StubSandbox(answer, wait_s=0.001))], grader=grader)
        self.closed = 0
        self.made.append(self)

    def close(self) -> None:
        super().close()
        self.closed += 1


def says(text: str) -> str:
    turns = text.count("assistant")
    return call(f"6*{turns}") if turns < 3 else "<answer>\\boxed{42}</answer>"


def play(share: float, settled: Any = None) -> tuple[list[Episode], Chaos, Scheduler, list[ShakyEngine]]:
    chaos = Chaos(seed=7, share=share)
    codec = scripted(says).codec
    engines = [ShakyEngine(codec, says, delay_s=0.001) for _ in range(3)]
    for engine in engines:
        engine.chaos = chaos
    scheduler = Scheduler(engines, max_strikes=5)
    requests = [EpisodeRequest(group=i // 8, seed=i // 8, sampling_seed=i) for i in range(400)]
    ShakyEnv.made.clear()
    with Player(
        lambda: ShakyEnv(chaos),
        scheduler,
        codec,
        sampling=SamplingParams(1),
        budget=Budget(tokens=2000),
        max_in_flight=64,
        max_failed=0.9,
    ) as player:
        episodes = player.play(requests) if settled is None else play_groups(player, 50, 8, settled)
    return episodes, chaos, scheduler, engines


def test_every_episode_is_accounted_for_when_everything_fails_now_and_then() -> None:
    clean, *_ = play(0.0)
    assert all(episode.correct and episode.turns == 3 for episode in clean)
    episodes, chaos, scheduler, engines = play(SHARE)

    assert len(episodes) == len(clean) == 400
    lost = [episode for episode in episodes if episode.failed]
    # A fault of a tool or a grader ends one episode; one of an engine none, unless every engine fails that request.
    engine_lost = [episode for episode in lost if "the engine" in str(episode.error)]
    assert len(lost) == chaos.faults["tool"] + chaos.faults["grader"] + len(engine_lost)
    assert min(chaos.faults[what] for what in ("tool", "grader", "engine")) > 20, "hardly anything went wrong"
    assert len(engine_lost) <= chaos.faults["engine"] // 3
    assert scheduler.stats().moved >= chaos.faults["engine"] - 3 * len(engine_lost)
    for episode, same in zip(episodes, clean, strict=True):
        if not episode.failed:
            assert (episode.end, episode.correct) == ("answered", True)
            assert (episode.prompt_ids, episode.completion_ids) == (same.prompt_ids, same.completion_ids)
            assert (episode.mask, episode.messages) == (same.mask, same.messages)
        else:
            assert (episode.reward, episode.correct) == (0.0, False)
            told = ToolStatus.UNAVAILABLE in episode.statuses or episode.answer is not None
            assert episode.error is not None or told, "nobody can tell what happened to it"

    assert scheduler.stats().waiting == 0
    assert not any(scheduler.stats().episodes)
    assert not any(engine.in_flight for engine in engines)
    assert ShakyEnv.made
    assert all(env.closed == 1 for env in ShakyEnv.made)


def test_groups_that_stop_early_in_the_chaos_are_accounted_for_too() -> None:
    def settled(group: Sequence[Episode | None]) -> bool:
        return sum(episode is not None and episode.available for episode in group) >= 4

    episodes, _, scheduler, engines = play(SHARE, settled)
    ends = Counter(episode.end for episode in episodes)
    assert set(ends) == {"answered", "unavailable", "cancelled"}
    assert sum(ends.values()) == 400
    groups = [episodes[at : at + 8] for at in range(0, 400, 8)]
    for group in groups:
        assert sum(episode.available for episode in group) >= 4 or not any(episode.cancelled for episode in group)
    assert not any(scheduler.stats().episodes)
    assert not any(engine.in_flight for engine in engines)
    assert all(env.closed == 1 for env in ShakyEnv.made)


_INTERRUPTED = """
import sys
sys.path.insert(0, {folder!r})
from scripted_engine import call, scripted, math_tool
from rstar2_env.rollout import EpisodeRequest, Player, SamplingParams, Scheduler

code = "import subprocess, time; print(1, flush=True); time.sleep(60)"
engines = [scripted(lambda text: call(code), delay_s=0.001) for _ in range(2)]
scheduler = Scheduler(engines)
make = math_tool(limits={{"wall_s": 4.0}})
with Player(make, scheduler, engines[0].codec, sampling=SamplingParams(1), max_in_flight=6) as player:
    env = make(); env.reset(seed=1); env.step(call("print(1)")); env.close()  # the sandbox is warm
    print("playing", flush=True)
    player.play([EpisodeRequest(seed=i) for i in range(12)])
"""

_PR_SET_CHILD_SUBREAPER = 36


def children() -> set[int]:
    """Processes whose parent is this one, whoever started them."""
    found = set()
    for task in Path("/proc/self/task").iterdir():
        found |= {int(pid) for pid in (task / "children").read_text().split()}
    return found


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="orphans are counted through /proc")
def test_an_interrupt_leaves_no_process_behind() -> None:
    libc = ctypes.CDLL(None)
    before = children()
    # Whatever the program leaves behind becomes ours.
    assert libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    try:
        program = _INTERRUPTED.format(folder=str(SUPPORT))
        with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
            try:
                assert child.stdout is not None
                assert child.stdout.readline() == b"playing\n"
                time.sleep(1.5)  # let programs start in the sandbox
                child.send_signal(signal.SIGINT)
                _, errors = child.communicate(timeout=400)
            finally:
                child.kill()
        assert b"KeyboardInterrupt" in errors
        assert child.returncode != 0
        deadline = time.monotonic() + 20
        while left := children() - before:
            for pid in left:
                os.waitpid(pid, os.WNOHANG)
            assert time.monotonic() < deadline, "processes are left behind"
            time.sleep(0.05)
    finally:
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def test_an_engine_that_hangs_does_not_keep_the_others_from_ending() -> None:
    engine = scripted(lambda text: "stop")
    hanging = scripted(lambda text: "stop", delay_s=1000)
    with echo_player(engine, budget=Budget(tokens=200, wall_s=2.0)) as player:
        player.engine = Scheduler([engine, hanging], "static")
        episodes = player.play([EpisodeRequest(seed=i) for i in range(8)])
    # Threads ask for the engines, in any order.
    assert sorted(episode.end for episode in episodes) == ["terminated"] * 4 + ["time"] * 4
    assert hanging.in_flight == 0
