"""The whole chain at once: trainer, model server and sandbox server as processes, each killed once.

The run goes on: every step is done once, every episode of every step is there once, none is lost to infrastructure, and
every token was drawn with the weights that the trainer had, also after the server began anew with the first ones.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from chain import Chain, Service, chain, vllm_servers
from places import SUPPORT
from vllm_serve import needs_vllm

from rstar2_env.core.run_folder import read_run

pytest.importorskip("httpx", reason="servers need the extra 'remote'")
pytest.importorskip("starlette", reason="servers need the extra 'serve'")

_APART = 1e-3
"""Mean distance of engine and trainer, in nats: with the same weights in float32, rounding is far below it."""


def check(
    played: Chain,
    steps: int,
    recorded: Callable[[str, object], None] | None = None,
    statuses_allowed: frozenset[str] = frozenset({"ok"}),
) -> None:
    """What holds of the run's folder, however often a process was killed."""
    run = read_run(played.run)
    assert run.finished
    assert [line["step"] for line in run.metrics()] == list(range(1, steps + 1))
    assert not list((played.run.parent / "weights").iterdir()), "the weights in the shared folder are gone"
    calls, apart = 0, []
    for line in run.metrics():
        step = int(line["step"])
        entries = run.episodes(step)
        # Two groups of twice two episodes.
        members = [(entry.episode.group, entry.member) for entry in entries]
        assert len(members) == len(set(members)) == 8
        assert line["rollout/unavailable"] == 0
        for entry in entries:
            statuses = [str(status) for turn in entry.episode.steps for status in turn.statuses]
            calls += len(statuses)
            assert set(statuses) <= statuses_allowed, statuses
            assert {turn.version for turn in entry.episode.steps} == {step - 1}
        if "mismatch/logp_difference" in line:  # a step of which nothing trains has none
            apart.append(float(line["mismatch/logp_difference"]))
    assert calls > 8 * steps
    assert len(apart) >= steps // 2
    assert max(apart) < _APART
    if recorded is not None:
        recorded("steps", steps)
        recorded("episodes", 8 * steps)
        recorded("tool calls", calls)
        recorded("distance of engine and trainer at most", f"{max(apart):.1e}")


@pytest.mark.train
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_run_goes_on_when_each_of_its_processes_is_killed_once(tiny_model: Path, tmp_path: Path) -> None:
    def serve(port: int) -> Service:
        command = [sys.executable, str(SUPPORT / "small_vllm.py"), str(tiny_model), str(port)]
        return Service("model", command, tmp_path / "model.log", f"http://127.0.0.1:{port}/health")

    with chain(tmp_path, tiny_model, serve, steps=6) as whole:
        whole.play({1: "model", 2: "sandbox", 4: "trainer"})
        assert (whole.model.starts, whole.sandbox.starts, whole.trainer.starts) == (2, 2, 2)
        assert "can be used again after" in whole.trainer.tail()
        check(whole, 6)


@pytest.mark.proof
@pytest.mark.train
def test_ten_steps_with_a_real_vllm_serve_and_each_process_killed_once(
    policy_folder: Path, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    needs_vllm()

    with chain(tmp_path, policy_folder, vllm_servers(policy_folder, tmp_path), steps=10) as whole:
        whole.play({3: "model", 5: "sandbox", 8: "trainer"}, down_s=3.0)
        assert (whole.model.starts, whole.sandbox.starts, whole.trainer.starts) == (2, 2, 2)
        check(whole, 10, record_property)


@pytest.mark.proof
@pytest.mark.train
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("sharding", ["fsdp2", "zero3", "fsdp2-lora"])
def test_ten_steps_of_two_sharded_processes_with_two_real_servers_and_a_faulty_tool(
    sharding: str, policy_folder: Path, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    needs_vllm()

    serve = vllm_servers(policy_folder, tmp_path)
    kind, _, lora = sharding.partition("-")
    options = ["--set", f"sharding={kind}", "--wrap", "fault_injection:rate=0.2,kinds=timeout+lost"]
    options += ["--set", "lora_rank=4"] if lora else []
    with chain(tmp_path, policy_folder, serve, steps=10, options=options, servers=2, processes=2) as whole:
        whole.play({})
        check(whole, 10, record_property, frozenset({"ok", "timeout", "unavailable"}))
        config = read_run(whole.run).config
        assert config["run"]["sharding"] == kind
