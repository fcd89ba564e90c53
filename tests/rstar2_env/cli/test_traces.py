"""Claims about ``rstar2 traces``: what it writes, and says to mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_runner import run


@pytest.fixture
def file(tmp_path) -> Path:
    path = tmp_path / "sums.jsonl"
    path.write_text("".join(json.dumps({"question": f"{n}+1?", "answer": n + 1}) + "\n" for n in range(6)))
    return path


def test_traces_writes_lines_that_keep_their_reward(tmp_path):
    out = tmp_path / "deep" / "traces.jsonl"
    done = run(
        *("traces", "--problems", "arithmetic", "-n", "20", "--out", out),
        *("--error-rate", "0.5", "--wrong-rate", "0.5", "--json"),
    )
    assert done.exit_code == 0, done.output
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    figures = json.loads(done.stdout)
    assert figures["kept"] == len(lines) == 20
    assert figures["earned_their_reward"] == sum(line["reward"] for line in lines)
    assert figures["mistakes"]["wrong"] == sum(line["wrong"] for line in lines)


def test_traces_makes_only_the_mistakes_it_is_told_to(tmp_path):
    command = ("traces", "--problems", "arithmetic", "-n", "10", "--out", tmp_path / "t.jsonl", "--error-rate", "1")
    done = run(*command, "--call-mistake", "broken_json", "--call-mistake", "unknown_tool", "--json")
    assert set(json.loads(done.stdout)["mistakes"]) <= {"broken_json", "unknown_tool"}
    refused = run(*command, "--call-mistake", "typo", "--overwrite")
    assert refused.exit_code == 2
    assert "undefined_name" in refused.output


def test_traces_tells_what_it_dropped_and_does_not_overwrite_unasked(file, tmp_path):
    out = tmp_path / "traces.jsonl"
    done = run("traces", "--problems", file, "--out", out)
    assert done.exit_code == 0
    assert "calculations nor an expression" in done.output
    again = run("traces", "--problems", file, "--out", out)
    assert again.exit_code == 2
    assert "exists already" in again.output


def test_a_file_of_traces_is_left_alone_when_the_options_do_not_fit(tmp_path):
    out = tmp_path / "traces.jsonl"
    assert run("traces", "--problems", "arithmetic", "--out", out).exit_code == 2
    assert not out.exists()
