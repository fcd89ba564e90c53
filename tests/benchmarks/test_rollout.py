"""``benchmarks/rollout.py`` in a small form: both sides play the same conversations, and a table comes out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch
from places import BENCHMARKS
from transformers import AutoModelForCausalLM

from rstar2_env.core.status import ToolStatus

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def rollout(benchmark_named: Callable[[str], ModuleType]) -> Iterator[ModuleType]:
    pytest.importorskip("trl", reason="needs the extra 'train'")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield benchmark_named("rollout")
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def policy(rollout: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = rollout.make_policy(tmp_path_factory.mktemp("policy"), steps=60, rows=8, hidden=64, layers=2)
    return folder


def test_both_sides_play_the_same_conversations_and_really_call_the_tool(rollout: ModuleType, policy: Path) -> None:
    bench = rollout.Bench(policy, groups=2, group_size=6)
    try:
        ours = bench.play(1)
        played = bench.trl(1)
        theirs = bench._trl.episodes
        assert sum(episode.statuses.count(ToolStatus.OK) for episode in ours) >= 6
        assert played.calls >= 6
        assert played.episodes == len(theirs) == len(ours) == 12
        assert played.policy_tokens > 12 * 10
        # What TRL renders is what our codec renders: the same prompt, and the same ids between two turns.
        trainer = bench._trl._trainer
        for episode in ours[::6]:
            messages = [{"role": "user", "content": episode.messages[0].content}]
            assert trainer._tokenize_prompts([messages] * 12)[0][0] == episode.prompt_ids
        suffix = bench.player.chat.suffix("user", "<tool_response>\nstub\n</tool_response>", ended=True)
        message = {"role": "tool", "name": "any", "content": "stub"}
        assert trainer._get_tool_suffix_ids([message]) == suffix
    finally:
        bench.close()


def test_a_pretrained_model_learns_the_turns_in_place_of_a_tiny_one(
    rollout: ModuleType, policy: Path, tmp_path: Path
) -> None:
    taught = rollout.make_policy(tmp_path / "taught", pretrained=policy, steps=2, rows=2)
    before, after = (AutoModelForCausalLM.from_pretrained(folder).state_dict() for folder in (policy, taught))
    assert before.keys() == after.keys()
    changed = max(float((after[name] - before[name]).abs().max()) for name in before)
    assert 0 < changed < 1e-4, "a step of training from the given weights"
    bench = rollout.Bench(taught, groups=1, group_size=12)
    try:
        assert bench.ours(1).calls >= 2
    finally:
        bench.close()


def test_it_prints_a_table_and_writes_every_run(
    rollout: ModuleType, policy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "runs.json"
    shape = ["--groups", "2", "--group-size", "4", "--repeats", "1"]
    assert rollout.main(["--policy", str(policy), *shape, "--json", str(file)]) == 0
    rows = json.loads(file.read_text())["rows"]
    assert len(rows) == len(rollout.ROWS) == 5
    assert all(row["ratio"] is None or row["ratio"] > 0 for row in rows)
    ((kept, anew),) = next(row["runs"] for row in rows if "cache between turns" in row["what"])
    assert kept[0] < anew[0] / 2
    printed = capsys.readouterr().out
    assert "ratio" in printed
    assert json.loads(printed.strip().splitlines()[-1])["load"] in printed


@pytest.mark.proof
def test_both_sides_play_through_vllm(policy: Path, record_property: Callable[[str, object], None]) -> None:
    pytest.importorskip("vllm", reason="needs the extra 'vllm'")
    words = ["--groups", "2", "--group-size", "4", "--repeats", "1", "--rows", "instant", "--vllm"]
    command = [sys.executable, str(BENCHMARKS / "rollout.py"), "--policy", str(policy), *words]
    said = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert said.returncode == 0, said.stderr[-3000:]
    _, row = json.loads(said.stdout.strip().splitlines()[-1])["rows"]
    assert row["what"].startswith("through vLLM")
    assert row["ratio"] > 0
    record_property("episodes", f"{row['ours']}, compared with {row['other']}")


def test_the_tail_is_one_call_in_a_hundred(rollout: ModuleType) -> None:
    waits = rollout.heavy_tail(400)
    assert sorted(waits)[-4:] == [2.0] * 4
    assert sorted(waits)[-5] < 0.2
    assert sorted(waits)[200] == pytest.approx(0.02, rel=0.2)
