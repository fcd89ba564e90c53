"""``rstar2 train`` from a file, and from what the run wrote about itself: the same run, step for step."""

from __future__ import annotations

import json

import pytest
from cli_runner import run
from places import SUPPORT

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


def lines(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
