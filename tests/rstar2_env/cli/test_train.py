"""Claims about ``rstar2 train`` and ``rstar2 sft``: how options reach the run."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from cli_runner import run

from rstar2_env.cli._options import layers_of
from rstar2_env.cli.demo import FIGURES
from rstar2_env.cli.train import _report, _resume_hint
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import read_loosely
from rstar2_env.trainers.base import TrainResult
from rstar2_env.trainers.record.checkpoints import mark_whole


def test_each_option_is_a_layer_over_those_before_it():
    given = layers_of(["temperature=0.7", "selector=all", "selector.reject_equal=true"])
    assert read_loosely(given[0]) == {"temperature": 0.7}
    assert [list(layer) for layer in given] == [["temperature"], ["selector"], ["selector"]]
    with pytest.raises(ConfigurationError, match="option 'steps' twice"):
        layers_of(["steps=1", "steps=2"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--set", "env.max_turn=3"), "Did you mean"),
        (("--set", "selector.mood=rank"), "Did you mean"),
        (("--lr", "-1"), "--lr must be a positive number, not -1.0"),
        (("--set", "learning_rate=abc"), "learning_rate must be a positive number, or none, not 'abc'"),
        (("--env", "CartPole-v1"), "text environment"),
        (("--env", "rstar2/MathTol-v0"), "Did you mean"),
        (("--problems", "nowhere.jsonl"), "nowhere.jsonl cannot be read"),
        (("--chat-template", "chatml", "--lora-rank", "-1"), "Invalid value for '--lora-rank'"),
        (("--group-size", "1"), "at least 2 episodes per group; group_size is 1"),
        (("--lr", "1e-5", "--set", "learning_rate=7e-3"), "--lr 1e-05 and --set learning_rate=7e-3 give"),
        (
            ("--set", "optim.learning_rate=7e-3", "--lr", "1e-5"),
            "and --set optim.learning_rate=7e-3 give two different",
        ),
        (("--problems-per-step", "2", "--set", "problems_per_step=2.5"), "problems_per_step must be an integer"),
        (("--eval-every", "3", "--set", "eval.every=4"), "--eval-every 3 and --set eval.every=4 give two different"),
        (("--problems", "arithmetic", "--set", "env.problems=gsm8k"), "--problems arithmetic and --set env.problems"),
        (("--max-tokens", "9", "--set", "max_episode_tokens=8"), "--max-tokens 9 and --set max_episode_tokens=8 give"),
        (("--env", "rstar2/Game24-v0", "--set", "env=rstar2/MathTool-v0"), "give two different values"),
        (("--wrap", "tool_budget:calls=2", "--set", "wrappers=tool_budget"), "and --set wrappers=tool_budget give"),
        (("--seed", "0", "--set", "seed=1"), "--seed 0 and --set seed=1 give two different values"),
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


@pytest.mark.parametrize(
    "arguments",
    [
        ("--lr", "1e-5", "--set", "learning_rate=0.00001"),
        ("--wrap", "tool_budget:calls=2", "--set", "wrappers=tool_budget:calls=2"),
        ("--steps", "3", "--set", "run.steps=3"),
        ("--problems", "arithmetic:level=2", "--set", "env.problems=arithmetic:level=2"),
    ],
)
def test_a_flag_and_an_equal_setting_are_accepted(arguments, tmp_path):
    done = run("train", "grpo", "--model", tmp_path / "none", "--out", tmp_path / "run", *arguments)
    assert "give two different values" not in done.output
    assert "There is no folder" in " ".join(done.output.split())


def test_the_flags_of_a_command_win_over_its_file(tmp_path, monkeypatch):
    layers = []
    api = importlib.import_module("rstar2_env.trainers.api")
    monkeypatch.setattr(api, "make_trainer", lambda name, *given: layers.extend(given) or _stop())
    file = tmp_path / "run.toml"
    file.write_text("steps = 2\nlora_rank = 4\n[rollout]\ntemperature = 0.5\n")
    words = ("--config", file, "--steps", "3", "--lora-rank", "0", "--max-tokens", "77", "--problems", "arithmetic")
    with pytest.raises(_StoppedError):
        run("train", "grpo", "--model", "m", *words, "--set", "temperature=0.25")
    config = api.find_recipe("grpo")[0].configure(*layers)
    assert (config.run.steps, config.model.lora_rank, config.rollout.max_episode_tokens) == (3, 0, 77)
    assert (config.model.path, config.rollout.temperature) == ("m", 0.25)
    assert config.rollout.env_options == {"problems": "arithmetic"}


class _StoppedError(Exception):
    pass


def _stop():
    raise _StoppedError


def test_an_interruption_says_resume_hint(tmp_path):
    assert "--save-every N" in _resume_hint(tmp_path)
    for step in (4, 10):
        (tmp_path / f"checkpoint-{step}").mkdir()
        mark_whole(tmp_path / f"checkpoint-{step}", 1)
    (tmp_path / "checkpoint-12").mkdir()  # a kill left it unfinished
    assert "To continue after step 10" in _resume_hint(tmp_path)


@pytest.mark.parametrize(
    ("rates", "best_step", "says", "row"),
    [
        (None, None, "it is unknown which step is the best", False),
        ((0.5, 0.25), 0, "Worse: the held-out pass rate went from 0.5000 to 0.2500", True),
        ((0.25, 0.5), 8, "Better: ", True),
    ],
)
def test_the_report_says_what_became_of_the_run(capsys, rates, best_step, says, row):
    figures = (
        [dict.fromkeys(FIGURES, 0.1) | {"pass_rate": rate, "pass_rate_se": 0.01} for rate in rates]
        if rates
        else [None, None]
    )
    _report(TrainResult(Path("run"), Path("run/final"), *figures, best_step, []))
    printed = " ".join(capsys.readouterr().out.split())
    assert says in printed
    assert (f"best step │ {best_step} │" in printed) is row


@pytest.mark.parametrize("suffix", ["toml", "yaml"])
def test_a_cold_start_takes_its_options_from_a_file_too(suffix, tmp_path, monkeypatch):
    given = {}
    monkeypatch.setattr("rstar2_env.trainers.sft", lambda traces, **options: given.update(options) or tmp_path)
    traces, config = tmp_path / "traces.jsonl", tmp_path / f"sft.{suffix}"
    traces.write_text("")
    config.write_text("epochs = 3\nseed = 5\n" if suffix == "toml" else "epochs: 3\nseed: 5\n")
    done = run("sft", "--traces", traces, "--config", config, "--model", "m", "--seed", "7", "--set", "dtype=float32")
    assert done.exit_code == 0, done.output
    assert given == {"epochs": 3, "seed": 7, "model": "m", "dtype": "float32"}
    same = run("sft", "--traces", traces, "--model", "m", "--steps", "3", "--set", "steps=3")
    assert same.exit_code == 0, same.output
    for setting, said in (("steps=4", "--steps 3 and --set steps=4 give two different"), ("steps=x", "steps must be")):
        refused = run("sft", "--traces", traces, "--model", "m", "--steps", "3", "--set", setting)
        assert refused.exit_code == 2
        assert said in " ".join(refused.output.split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(("--lr", "-1"), "--lr must be a positive"), (("--set", "seed=x"), "--set seed must be an integer")],
)
def test_a_wrong_number_of_a_cold_start_names_what_was_typed(arguments, said, tmp_path):
    traces = tmp_path / "traces.jsonl"
    traces.write_text('{"messages": []}\n')
    done = run("sft", "--model", tmp_path, "--traces", traces, *arguments)
    assert done.exit_code == 2
    assert said in done.stderr


def test_the_help_names_no_temperature_that_training_refuses():
    shown = run("train", "grpo", "--help").stdout
    own = shown.partition("--temperature")[2].partition(" --")[0]
    assert "above 0" in own
    assert "x>=0" not in own


def test_one_run_is_not_counted_as_runs():
    assert "got 1 run." in run("diagnose", "--compare", "a").stderr
