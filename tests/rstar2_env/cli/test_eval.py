"""Claims about ``rstar2 eval``: what it prints, writes, and says to mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_runner import run

ID = "rstar2/MathTool-v0"


@pytest.fixture
def file(tmp_path) -> Path:
    path = tmp_path / "sums.jsonl"
    path.write_text("".join(json.dumps({"question": f"{n}+1?", "answer": n + 1}) + "\n" for n in range(6)))
    return path


def test_eval_prints_a_table_and_writes_a_line_an_episode(file, tmp_path):
    out = tmp_path / "out.jsonl"
    done = run("eval", ID, "--agent", "oracle", "--problems", file, "--out", out)
    assert done.exit_code == 0, done.output
    for words in ("oracle on", "pass rate", "100.00", "answered 6", "episodes/s"):
        assert words in done.output
    assert len(out.read_text().splitlines()) == 6


def test_eval_resumes_and_otherwise_refuses_to_overwrite(file, tmp_path):
    out = tmp_path / "out.jsonl"
    command = ("eval", ID, "--agent", "oracle", "--problems", file, "--out", out)
    assert run(*command).exit_code == 0
    again = run(*command)
    assert again.exit_code == 2
    assert "exists already" in again.output
    resumed = json.loads(run(*command, "--resume", "--json").stdout)
    assert (resumed["played"], resumed["episodes"]) == (0, 6)
    assert run(*command, "--overwrite").exit_code == 0


def test_eval_prints_one_json_object_and_takes_options(file):
    done = run(
        *("eval", ID, "--agent", "oracle", "--problems", file, "--episodes", "4", "--seed", "3", "--workers", "2"),
        *("--set", "agent.corrupt=true", "--set", "env.max_turns=3", "--json"),
    )
    figures = json.loads(done.stdout)
    assert figures["pass_rate"]["value"] == 0.0
    assert figures["episodes"] == 4


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("rstar2/Mathtool-v0", "--agent", "oracle"), "Did you mean 'rstar2/MathTool-v0'"),
        ((ID, "--agent", "oracel"), "Did you mean 'oracle'"),
        ((ID, "--agent", "oracle"), "never ends"),
        ((ID, "--agent", "oracle", "--problems", "nowhere.jsonl"), "nowhere.jsonl cannot be read"),
        ((ID, "--agent", "oracle", "--set", "agent.corrupt"), "name=value"),
        ((ID, "--agent", "oracle", "--set", "env.max_turns=0", "--episodes", "1"), "max_turns"),
        ((ID, "--agent", "oracle", "--episodes", "1", "--resume"), "needs --out"),
    ],
)
def test_eval_says_what_is_wrong_in_a_line_and_exits_with_2(arguments, said):
    done = run("eval", *arguments)
    assert done.exit_code == 2
    assert said in " ".join(done.output.split())
    assert "Traceback" not in done.output
