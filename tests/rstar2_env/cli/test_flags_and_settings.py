"""A flag and ``--set`` of the same option may not disagree, in any command that has both."""

from __future__ import annotations

import pytest
from cli_runner import run

_PLAYED = ("traces", "--model", "nowhere", "--out", "traces.jsonl")
_WORKED = ("traces", "--problems", "arithmetic:level=1", "--out", "traces.jsonl")


@pytest.mark.parametrize(
    ("command", "flag", "setting"),
    [
        (("play", "rstar2/MathTool-v0"), ("--problems", "arithmetic"), "env.problems=gsm8k"),
        (("play", "rstar2/MathTool-v0"), ("--split", "train"), "env.split=test"),
        (("validate", "rstar2/MathTool-v0"), ("--problems", "arithmetic"), "env.problems=gsm8k"),
        (("validate", "rstar2/MathTool-v0", "--level", "1"), ("--split", "train"), "env.split=test"),
        (_WORKED, ("--split", "train"), "env.split=test"),
        (_PLAYED, ("--temperature", "0.5"), "model.temperature=0.7"),
        (_PLAYED, ("--max-tokens", "64"), "model.max_episode_tokens=65"),
        (_PLAYED, ("--problems", "arithmetic"), "env.problems=gsm8k"),
        (("plan", "grpo"), ("--model", "qwen3-14b"), "model=qwen3-8b"),
        (("eval", "rstar2/MathTool-v0", "--model", "nowhere"), ("--temperature", "0.5"), "model.temperature=0.7"),
    ],
)
def test_a_flag_that_disagrees_with_a_setting_is_refused(command, flag, setting, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run(*command, *flag, "--set", setting)
    assert done.exit_code == 2
    assert f"{' '.join(flag)} and --set {setting} give two different values" in " ".join(done.output.split())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "command",
    [
        (
            "validate",
            "rstar2/MathTool-v0",
            "--problems",
            "arithmetic:level=1",
            "--set",
            "env.problems=arithmetic:level=1",
        ),
        (
            "traces",
            "--split",
            "train",
            "--set",
            "env.split=train",
            "--problems",
            "arithmetic:level=1",
            "--out",
            "t.jsonl",
        ),
    ],
)
def test_a_flag_and_an_equal_setting_are_accepted(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run(*command, "-n", "2")
    assert "give two different values" not in done.output


@pytest.mark.parametrize(
    "command",
    [
        ("traces", "--problems", "arithmetic:level=1", "-n", "2"),
        ("eval", "rstar2/MathTool-v0", "--agent", "oracle", "-n", "2"),
        ("play", "rstar2/MathTool-v0", "-n", "1"),
        ("problems", "write", "arithmetic:level=1", "--count", "2"),
    ],
)
def test_a_file_of_json_lines_is_not_given_the_suffix_of_another_format(command, tmp_path):
    done = run(*command, "--out", tmp_path / "file.csv")
    assert done.exit_code == 2
    assert "name the file file.jsonl" in " ".join(done.output.split())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "command", [("validate", "rstar2/MathTool-v0", "--level", "1"), ("audit", "verifier:rules"), ("view", ".")]
)
def test_a_page_is_not_given_the_suffix_of_another_format(command, tmp_path):
    done = run(*command, "--report", tmp_path / "report.pdf")
    assert done.exit_code == 2
    assert "name the file report.html" in " ".join(done.output.split())
    assert list(tmp_path.iterdir()) == []
