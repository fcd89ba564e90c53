"""Claims about ``rstar2 train`` and ``rstar2 sft``: how options reach the run."""

from __future__ import annotations

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
    with pytest.raises(ConfigurationError, match="'steps' is given twice"):
        layers_of(["steps=1", "steps=2"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--set", "env.max_turn=3"), "Did you mean"),
        (("--set", "selector.mood=rank"), "Did you mean"),
        (("--set", "learning_rate=abc"), "learning_rate must be a positive number, not 'abc'"),
        (("--env", "CartPole-v1"), "text environment"),
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


def test_an_interruption_says_resume_hint(tmp_path):
    assert "--save-every N" in _resume_hint(tmp_path)
    for step in (4, 10):
        (tmp_path / f"checkpoint-{step}").mkdir()
        mark_whole(tmp_path / f"checkpoint-{step}", 1)
    (tmp_path / "checkpoint-12").mkdir()  # a kill left it unfinished
    assert "--resume continues after step 10" in _resume_hint(tmp_path)


@pytest.mark.parametrize(
    ("rates", "best_step", "says", "row"),
    [
        (None, None, "no step is known to be the best", False),
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
