"""One queue for two processes that fits the caches of two real ``vllm serve``, which are far too small for a step."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from chain import Chain, chain, vllm_servers
from curves import differing
from places import SUPPORT
from vllm_serve import needs_vllm

from rstar2_env.core.run_folder import Run, read_run
from rstar2_env.core.run_folder.layout import EPISODES, step_files
from rstar2_env.rollout import EngineStats
from rstar2_env.rollout.engines.vllm_server_engine import VllmServerEngine

pytest.importorskip("httpx", reason="servers need the extra 'remote'")

_APART = 1e-3
"""Mean distance of engine and trainer, in nats: with the same weights in float32, rounding is far below it."""
_STEPS, _GROUPS, _MEMBERS = 3, 8, 16
_CACHE, _LONGEST = 2048, 768
"""Tokens that a server's cache holds, and those of the longest episode."""
_BYTES = 2 * 2 * 64 * 4 // 2
"""Of a token in the cache of the served model: keys and values of two layers of width 64, of which heads share half."""
_SETTINGS = {"max_turn_tokens": "64", "max_episode_tokens": str(_LONGEST)}


@contextmanager
def watched(whole: Chain) -> Iterator[list[EngineStats]]:
    """Looks at every server, a few each second, while something plays."""
    engine = VllmServerEngine(
        [one.health.removesuffix("/health") for one in (whole.model, *whole.others)], start_timeout_s=300
    )
    seen: list[EngineStats] = []
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.3):
            seen.extend(asyncio.run(engine.loads()))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()
        engine.close()


def played_in(log: Path) -> list[list[dict[str, Any]]]:
    """What each process wrote down of the episodes that it played."""
    return [[json.loads(line) for line in file.read_text().splitlines()] for file in sorted(log.iterdir())]


def most_at_once(played: list[list[dict[str, Any]]]) -> int:
    """Largest number of episodes that went on at the same time, in all processes together."""
    episodes = [one for process in played for one in process]
    changes = sorted([(one["began"], 1) for one in episodes] + [(one["ended"], -1) for one in episodes])
    return max(accumulate(change for _, change in changes))


def of_process(run: Run, step: int, rank: int) -> list[dict[str, Any]]:
    """The episodes that a process has trained on in a step."""
    (file,) = (one for one in step_files(run.path / EPISODES) if (one.step, one.rank) == (step, rank))
    with gzip.open(file.path, "rt") as lines:
        return [json.loads(line) for line in lines]


def check(run: Run, played: list[list[dict[str, Any]]]) -> int:
    """Every episode was played once, and is whole where its group trains; how many another process has played."""
    assert len(played) == 2
    lent, wanted = 0, Counter[int]()
    for step in range(1, _STEPS + 1):
        for rank, groups in enumerate((range(_GROUPS // 2), range(_GROUPS // 2, _GROUPS))):
            own = of_process(run, step, rank)
            members = Counter((one["group"], one["member"]) for one in own)
            assert members == Counter((group, member) for group in groups for member in range(_MEMBERS))
            assert {one["end"] for one in own} == {"terminated"}
            assert {turn["version"] for one in own for turn in one["steps"]} == {step - 1}
            seeds = Counter(one["seed"] for one in own)
            assert len(seeds) == len(groups), "a group has a seed of its own"
            wanted += seeds
            lent += sum(one["seed"] in seeds for one in played[1 - rank])
    assert Counter(one["seed"] for process in played for one in process) == wanted
    return lent


@pytest.mark.proof
@pytest.mark.train
@pytest.mark.timeout(3600)
def test_two_processes_play_what_the_caches_of_two_real_vllm_hold_and_every_episode_once(
    policy_folder: Path, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Beside a run that plays all episodes at once, which loses many caches, and plays the same episodes."""
    needs_vllm()
    small = ["--kv-cache-memory-bytes", str(_CACHE * _BYTES), "--max-model-len", "1024", "--block-size", "32"]
    options = ["--env", f"{SUPPORT / 'unequal_env.py'}:UnequalEnv", "--group-size", str(_MEMBERS // 2)]
    options += ["--problems-per-step", str(_GROUPS), "--set", "keep_tokens=true"]
    serve = vllm_servers(policy_folder, tmp_path, *small)
    lost: dict[str, float] = {}
    runs: dict[str, Run] = {}
    with chain(tmp_path, policy_folder, serve, steps=_STEPS, settings=_SETTINGS, servers=2) as whole:
        for name, adaptive in (("adaptive", "true"), ("all at once", "false")):
            log = tmp_path / f"played {name}"
            log.mkdir()
            more = ["--set", f"env.log={log}", "--set", f"adaptive_in_flight={adaptive}"]
            whole.prepare(name, [*options, *more, "--set", "one_queue=true"], processes=2)
            whole.begin()
            with watched(whole) as seen:
                whole.play({})
            assert "is lost" not in whole.trainer.log.read_text(), "nobody killed a server"
            run, played = read_run(whole.run), played_in(log)
            lent, at_once = check(run, played), most_at_once(played)
            lines = run.metrics()
            # A step of which nothing trains has none.
            apart = [line["mismatch/logp_difference"] for line in lines if "mismatch/logp_difference" in line]
            assert apart
            assert max(apart) < _APART
            lost[name], runs[name] = sum(line["engine/preemptions"] for line in lines), run
            fullest = max(load.kv_usage for load in seen)
            assert fullest > 0.75, "a cache is full, or there is nothing to follow"
            if adaptive == "true":
                found = [line["engine/in_flight"] for line in lines]
                first = 2 * _CACHE // _LONGEST
                assert max(found) > first
                assert first <= at_once < _GROUPS * _MEMBERS / 2
                assert lent > 0
                record_property("in flight at first and after each step", [first, *map(int, found)])
                record_property("episodes that the other process played", lent)
            else:
                assert at_once > 0.9 * _GROUPS * _MEMBERS
            record_property(f"{name}: caches lost", int(lost[name]))
            record_property(f"{name}: most episodes at once", at_once)
            record_property(f"{name}: fullest cache", round(fullest, 2))
            record_property(f"{name}: distance of engine and trainer at most", f"{max(apart):.1e}")
    assert lost["adaptive"] < lost["all at once"] / 3
    assert not differing(runs["adaptive"], runs["all at once"])
    record_property("steps", _STEPS)
    record_property("episodes", 2 * _STEPS * _GROUPS * _MEMBERS)
