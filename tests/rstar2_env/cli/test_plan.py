"""``rstar2 plan`` prints a plan, and says what is wrong with what was asked."""

from __future__ import annotations

import json

import pytest
from cli_runner import run
from places import ROOT


def test_the_papers_run_is_planned_from_its_file() -> None:
    result = run(
        "plan", "--model", "qwen3-14b", "--gpus", "64", "--config", ROOT / "configs/paper_stage2.toml", "--json"
    )
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert (found["step"]["episodes"], found["step"]["budget"]) == (512 * 32, 12_288)
    assert (found["devices"]["name"], found["devices"]["count"]) == ("MI300X", 64)


def test_options_and_assumptions_on_the_command_line_count() -> None:
    words = ("--set", "max_episode_tokens=4096", "--set", "lora_rank=8", "--assume", "mean_tokens=1000", "--json")
    found = json.loads(run("plan", "grpo", "--model", "qwen3-8b", "--gpus", "1", *words).stdout)
    assert (found["step"]["budget"], found["step"]["mean_tokens"]) == (4096, 1000)
    assert found["training"]["lora_rank"] == 8


def test_for_people_it_shows_memory_seconds_and_every_assumption() -> None:
    shown = run("plan", "--model", "qwen3-14b", "--gpus", "64", columns=120).output
    for words in (
        "14.77 billion",
        "training memory per device (computed)",
        "seconds per step (computed)",
        "weight sync",
        "in turn",
        "2048",
        "other placements",
        "handover_gb_s",
    ):
        assert words in shown
    assert "None" not in shown


def test_a_run_that_does_not_fit_exits_with_1_and_says_what_would_help() -> None:
    result = run("plan", "--model", "qwen3-14b", "--gpus", "1", "--gpu", "H100")
    assert result.exit_code == 1
    assert "Ways out" in result.output


def test_the_model_may_be_that_of_a_file_or_of_set(tmp_path) -> None:
    file = tmp_path / "run.toml"
    file.write_text('trainer = "grpo"\n[model]\npath = "qwen3-8b"\n')
    for words in (("--config", file), ("--set", "model=qwen3-8b")):
        assert "qwen3-8b on 8 x MI300X" in run("plan", *words).output


def test_published_figures_are_compared() -> None:
    found = json.loads(run("plan", "--published", "--json").stdout)
    assert {one["fitted"] for one in found} == {True, False}
    assert "does not show how accurate" in run("plan", "--published").output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "No model is named"),
        (("nope",), "There is no trainer named 'nope'"),
        (("--config", "nowhere.toml"), "nowhere.toml cannot be read"),
        (("--model", "qwen3-14"), "Did you mean 'qwen3-14b'"),
        (("--model", "qwen3-8b", "--gpu", "MI9"), "device type 'MI9' is unknown"),
        (("--model", "qwen3-8b", "--assume", "nope=1"), "no option --assume nope"),
        (("--model", "qwen3-8b", "--config", "pyproject.jsonl"), "must have a name that ends in one of .toml"),
        (("--model", "qwen3-8b", "--serve", "8"), "serving devices must be at least 0 and less than 8"),
        (("nope", "--model", "qwen3-8b"), "nope"),
    ],
)
def test_a_mistake_is_one_line(words: tuple[str, ...], message: str) -> None:
    result = run("plan", *words)
    assert result.exit_code == 2
    assert message in result.stderr
