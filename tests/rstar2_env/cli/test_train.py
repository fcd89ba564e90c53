"""Claims about ``rstar2 train`` and ``rstar2 sft``: how options reach the run."""

from __future__ import annotations

import pytest
from cli_runner import run

from rstar2_env.cli._options import training_options
from rstar2_env.cli.train import _how_to_go_on
from rstar2_env.core.options import read_loosely
from rstar2_env.trainers import TrainConfig


def test_an_option_of_a_part_is_named_by_the_part():
    given = training_options(
        ["temperature=0.7", "env.max_turns=3", "selector.mode=rank", "trl_options.x=1"], TrainConfig
    )
    assert read_loosely(given) == {
        "temperature": 0.7,
        "env_options": {"max_turns": 3},
        "selector_options": {"mode": "rank"},
        "trl_options": {"x": 1},
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--set", "env.max_turn=3"), "Did you mean"),
        (("--set", "selector.mood=rank"), "Did you mean"),
        (("--set", "learning_rate=abc"), "learning_rate must be a positive number, not 'abc'"),
        (("--env", "CartPole-v1"), "no text environment"),
        (("--env", "rstar2/MathTol-v0"), "Did you mean"),
        (("--problems", "nowhere.jsonl"), "nowhere.jsonl cannot be read"),
        (("--chat-template", "chatml", "--lora-rank", "-1"), "Invalid value for '--lora-rank'"),
    ],
)
def test_mistakes_are_told_before_a_model_is_loaded(arguments, said, tmp_path):
    model = tmp_path / "no model that could be loaded"
    model.mkdir()
    (model / "config.json").write_text("{}")
    done = run("train", "grpo_roc", "--model", model, "--out", tmp_path / "run", *arguments)
    assert done.exit_code == 2
    assert said in " ".join(done.output.split())
    assert not (tmp_path / "run").exists()


def test_an_interruption_says_how_to_go_on(tmp_path):
    assert "--save-every N" in _how_to_go_on(tmp_path)
    for step in (4, 10):
        (tmp_path / f"checkpoint-{step}").mkdir()
    assert "--resume continues after step 10" in _how_to_go_on(tmp_path)
