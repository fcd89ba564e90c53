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


def test_a_file_of_traces_is_not_overwritten_unasked(tmp_path):
    out = tmp_path / "traces.jsonl"
    command = ("traces", "--problems", "arithmetic", "-n", "3", "--out", out)
    assert run(*command).exit_code == 0
    again = run(*command)
    assert again.exit_code == 2
    assert "exists already" in again.output
    assert "--overwrite" in again.output
    assert "--resume" in again.output


def test_problems_that_give_no_trace_are_an_error_which_leaves_no_file(file, tmp_path):
    out = tmp_path / "traces.jsonl"
    done = run("traces", "--problems", file, "--out", out, columns=200)
    assert done.exit_code == 1
    assert "calculations nor an expression" in " ".join(done.output.replace("│", " ").split())
    assert f"none of the 6 problems of {file} produced a trace" in done.stderr
    assert "traces.jsonl" not in done.stdout
    assert not out.exists()


def test_a_run_that_was_cut_short_goes_on_to_the_same_file(tmp_path):
    command = ("traces", "--problems", "arithmetic", "-n", "30", "--error-rate", "0.5", "--json", "--out")
    whole, out = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl"
    figures = json.loads(run(*command, whole).stdout)
    lines = whole.read_bytes().splitlines(keepends=True)
    out.write_bytes(b"".join(lines[:11]) + lines[11][:40])
    resumed = json.loads(run(*command, out, "--resume").stdout)
    assert out.read_bytes() == whole.read_bytes()
    assert {key: resumed[key] for key in ("kept", "mistakes")} == {key: figures[key] for key in ("kept", "mistakes")}
    again = run(*command, out, "--resume")
    assert json.loads(again.stdout)["kept"] == 30
    assert out.read_bytes() == whole.read_bytes()


def test_what_was_dropped_before_an_interruption_is_counted_and_not_tried_again(tmp_path):
    problems, out = tmp_path / "some.jsonl", tmp_path / "t.jsonl"
    rows = [{"question": f"{n}+1?", "answer": n + 1, **({"expression": f"{n}+1"} if n % 2 else {})} for n in range(8)]
    problems.write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = ("traces", "--problems", problems, "--out", out, "--json")
    first = json.loads(run(*command).stdout)
    assert (first["kept"], first["dropped"]) == (4, 4)
    out.write_bytes(b"".join(out.read_bytes().splitlines(keepends=True)[:2]))
    second = json.loads(run(*command, "--resume").stdout)
    assert (second["kept"], second["dropped"]) == (4, 4)
    assert second["reasons"]["dropped before this run"] == 2
    assert [json.loads(line)["index"] for line in out.read_text().splitlines()] == [1, 3, 5, 7]


@pytest.mark.parametrize("other", [("--seed", "1"), ("--wrong-rate", "0.5"), ("--set", "env.max_turns=5")])
def test_traces_of_other_options_are_not_gone_on_with(tmp_path, other):
    out = tmp_path / "t.jsonl"
    command = ("traces", "--problems", "arithmetic", "-n", "4", "--out", out)
    assert run(*command).exit_code == 0
    before = out.read_bytes()
    done = run(*command, "--resume", *other)
    assert done.exit_code == 2
    assert "was written with other settings" in done.output
    assert out.read_bytes() == before


def test_a_file_of_traces_is_left_alone_when_the_options_do_not_fit(tmp_path):
    out = tmp_path / "traces.jsonl"
    assert run("traces", "--problems", "arithmetic", "--out", out).exit_code == 2
    assert not out.exists()
