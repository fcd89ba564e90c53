"""The experiment with a pretrained model, run whole with a tiny one: policies, results, and nothing made twice."""

from __future__ import annotations

import json
import os
from pathlib import Path

import prepared
import pytest
from places import BENCHMARKS, ROOT

pytest.importorskip("trl", reason="this trains: the extra 'train'")
pytestmark = pytest.mark.train


def test_a_tool_policy_and_what_it_needs_are_made_once(tiny_model: Path, tmp_path: Path) -> None:
    words = [str(BENCHMARKS / "real_model.py"), "experiment", "--model", str(tiny_model)]
    words += ["--results", str(tmp_path / "results.jsonl"), "--out", str(tmp_path / "runs"), "--seeds", "1"]
    words += ["--only", "base+grpo", "--traces", "16", "--epochs", "1", "--steps", "1", "--groups", "1"]
    words += ["--group-size", "2", "--problems", "2", "--samples", "2", "--max-tokens", "24"]
    done = prepared.run(words, cwd=ROOT, env=os.environ, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    results = (tmp_path / "results.jsonl").read_text().splitlines()
    assert [
        f'"policy": "{name}"' in line for name, line in zip(("base", "cold_start", "grpo"), results, strict=True)
    ] == [True] * 3
    again = prepared.run(words, cwd=ROOT, env=os.environ, timeout=600)
    assert again.returncode == 0
    assert (tmp_path / "results.jsonl").read_text().splitlines() == results
    start = [*words, "--start", str(tiny_model), "--only", "cold_start", "--seeds", "2"]
    done = prepared.run(start, cwd=ROOT, env=os.environ, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    (given,) = map(json.loads, (tmp_path / "results.jsonl").read_text().splitlines()[3:])
    assert (given["policy"], given["seed"], given["settings"]["start"]) == ("cold_start", 0, tiny_model.name)
    assert len(list((tmp_path / "runs").rglob("train"))) == 2, "nothing more was trained"
    table = [str(BENCHMARKS / "real_model.py"), "table", "--results", str(tmp_path / "results.jsonl")]
    shown = prepared.run(table, cwd=ROOT, env=os.environ, timeout=120).stdout
    assert "| cold_start | 1 |" in shown
    assert "- grpo - cold_start: success" in shown
