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


def test_a_level_is_checked_and_told_by_check():
    done = run("validate", ID, "--level", "1", "--episodes", "2", columns=160)
    assert done.exit_code == 0, done.output
    assert "fit to train on" in done.output
    assert "task_distribution_pinning" in done.output
    assert "floor_gap" not in done.output


def test_a_check_that_fails_exits_with_1_and_says_what_to_do(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    page, name = tmp_path / "report.html", f"{tmp_path}/mine.py:Generous"
    done = run("validate", name, "--level", "3", "--check", "noop", "--check", "manifest", "-n", "2", "--report", page)
    assert done.exit_code == 1
    assert "not fit to train on (1 passed, 1 failed, 0 not applicable)" in " ".join(done.output.split())
    assert "grade only an answer that the policy gave" in " ".join(done.output.split())
    assert "<td><code>noop</code></td>" in page.read_text()
    told = run("validate", name, "--level", "3", "--check", "noop", "-n", "2", "--json")
    assert told.exit_code == 1
    assert json.loads(told.stdout)["checks"][0]["outcome"] == "failed"


def test_bounds_are_set_by_name_and_mistakes_are_told():
    bound = ("--level", "4", "--check", "headroom", "-n", "2", "--set", "bounds.headroom=1")
    assert run("validate", ID, *bound, "--set", "env.max_turns=2").exit_code == 0
    for wrong in (
        ("--level", "4", "--set", "bounds.headroom=2"),
        ("--level", "4", "--check", "hedroom"),
        ("--check", "headroom"),
        ("--report", "report.html"),
        ("--level", "7"),
    ):
        assert run("validate", ID, *wrong).exit_code == 2


MINE = """
from rstar2_env import Ended, GoldGrader, ToolEnv


class Generous(ToolEnv):
    "Pays whoever says nothing."

    def __init__(self, **options):
        super().__init__(problems=[{"question": "1+1?", "answer": "2"}], tools=[], grader=GoldGrader(), **options)

    def answer_turn(self, turn):
        ended = super().answer_turn(turn)
        return Ended(None, 1.0, True, end="no_answer") if ended.answer is None else ended
"""
