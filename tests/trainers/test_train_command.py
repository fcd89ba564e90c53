"""``rstar2 train`` from a file, and from what the run wrote about itself: the same run, step for step."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_runner import run
from places import SUPPORT

from rstar2_env.cli.train import _problems
from rstar2_env.trainers.api import default_folder

RECIPE = """
trainer = "grpo_roc"
env = "{env}"

[run]
steps = 2
threads = 1
progress = false

[rollout]
problems_per_step = 2
group_size = 4
max_episode_tokens = 16
max_turn_tokens = 2

[optim]
learning_rate = 3e-3

[parts]
selector.mode = "rank"
loss = ["ppo_clip:high=0.3"]
"""


@pytest.mark.train
def test_a_run_is_given_back_as_a_configuration_and_repeats_itself(tiny_model, tmp_path):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(RECIPE.format(env=f"{SUPPORT}/letter_env.py:LetterEnv"))
    first, second = tmp_path / "first", tmp_path / "second"
    done = run("train", recipe, "--model", tiny_model, "--out", first, "--set", "advantage.eps=1e-3")
    assert done.exit_code == 0, done.output
    config = json.loads((first / "config.json").read_text())
    assert (config["trainer"], config["parts"]["advantage"]["eps"]) == ("grpo_roc", 1e-3)
    assert config["parts"]["selector"]["mode"] == "rank"

    again = run("train", first, "--out", second)
    assert again.exit_code == 0, again.output
    repeated = json.loads((second / "config.json").read_text())
    assert {**repeated["run"], "output_dir": ""} == {**config["run"], "output_dir": ""}
    assert {name: repeated[name] for name in repeated if name != "run"} == {
        name: config[name] for name in config if name != "run"
    }
    for one, other in zip(lines(first), lines(second), strict=True):
        for name in ("loss", "grad_norm", "rollout/pass_rate", "rollout/reward"):
            assert one.get(name) == pytest.approx(other.get(name), rel=1e-6), name


@pytest.mark.train
def test_a_run_that_is_named_by_its_folder_goes_on_in_it_and_nowhere_else(tiny_model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    recipe, place = tmp_path / "recipe.toml", "other/place/run"
    recipe.write_text(RECIPE.format(env=f"{SUPPORT}/letter_env.py:LetterEnv"))
    assert run("train", "recipe.toml", "--model", tiny_model, "--out", place, "--save-every", 1).exit_code == 0
    refused = run("train", place)
    assert refused.exit_code == 2
    assert "already holds a training run: choose another folder, continue it, or replace it" in refused.output
    done = run("train", place, "--set", "steps=3", "--resume")
    assert done.exit_code == 0, done.output
    assert [line["step"] for line in lines(tmp_path / place) if "loss" in line] == [1, 2, 3]
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("name", "folder"),
    [("grpo", "runs/grpo"), ("place/mix.toml", "runs/mix"), ("./mix.py:MIX", "runs/mix"), ("a/b/run", "a/b/run")],
)
def test_a_run_without_a_folder_goes_to_its_name_among_the_runs(name, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a/b/run").mkdir(parents=True)
    for file in ("config.json", "run.json"):
        (tmp_path / "a/b/run" / file).write_text("{}")
    assert default_folder(name) == Path(folder)
    assert default_folder("a/b/run/config.json") == Path("a/b/run")


def lines(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(
    ("written", "held_out"),
    [
        ("train.jsonl", {"holdout": 0.05}),
        ("arithmetic:level=2", {}),
        ('{"mix": [{"spec": "saturn:clauses=5"}, {"spec": "saturn:clauses=6"}]}', {}),
    ],
)
def test_a_share_is_held_out_of_a_file_alone(written, held_out):
    assert _problems({"problems": written}, None, None, None) == {"env": held_out}
    assert _problems({}, written, None, None) == {"env": {"problems": written, **held_out}}
