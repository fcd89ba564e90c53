"""Claims about ``rstar2 validate``."""

from __future__ import annotations

import json

from cli_runner import run

ID = "rstar2/MathTool-v0"


def test_it_exits_with_1_when_something_is_wrong_and_lists_it(tmp_path):
    file = tmp_path / "bad.jsonl"
    file.write_text('{"id": "open", "question": "?", "answer": "{1"}\n')
    done = run("validate", ID, "--problems", file, "--no-contract")
    assert done.exit_code == 1
    assert "open (gold)" in done.output


def test_it_prints_one_json_object():
    done = run("validate", ID, "--episodes", "3", "--no-contract", "--json", "--set", "env.max_turns=3")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["n"] == 3


def test_mistakes_are_told_in_a_line():
    done = run("validate", "rstar2/MathTol-v0")
    assert done.exit_code == 2
    assert "Did you mean" in done.output
