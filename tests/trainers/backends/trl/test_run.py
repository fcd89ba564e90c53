"""A whole run: it learns, keeps what it made, resumes exactly, and says what is wrong with its surroundings."""

import gzip
import json
import math
import shutil
from pathlib import Path

import gymnasium as gym
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from rstar2_env import trainers
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.rollout import RolloutError
from rstar2_env.trainers.backends.trl.run import batch_shape
from rstar2_env.wrappers import read_episodes

pytestmark = pytest.mark.train


def train(name, options, **changes):
    trainer = trainers.make(name, **{**options, **changes})
    try:
        return trainer.train()
    finally:
        trainer.close()


def weights(folder):
    return AutoModelForCausalLM.from_pretrained(folder).state_dict()


@pytest.mark.parametrize("name", ["grpo", "grpo_roc"])
def test_any_text_environment_is_learned_by_any_trainer(name, letter_options):
    result = train(name, letter_options, steps=40, problems_per_step=8, rows_per_device=32, learning_rate=1e-2)
    rates = [line["rollout/pass_rate"] for line in result.history if "rollout/pass_rate" in line]
    assert sum(rates[:3]) / 3 < 0.5
    assert sum(rates[-5:]) / 5 > 0.8


def test_the_best_weights_of_held_out_evaluation_are_kept_and_load(letter_options):
    result = train("grpo", letter_options, steps=4, eval_every=2, eval_episodes=16, eval_env_options={})
    evaluations = {line["step"]: line["eval/pass_rate"] for line in result.history if "eval/pass_rate" in line}
    assert set(evaluations) == {0, 2, 4}
    assert evaluations[result.best_step] == max(evaluations.values())
    assert result.before["pass_rate"] == evaluations[0]
    assert result.model_dir.name == "best"
    weights(result.model_dir)


def test_an_evaluation_takes_nothing_from_the_line_of_its_step(letter_options):
    result = train("grpo", letter_options, steps=3, eval_every=3, eval_episodes=4)
    lines = [json.loads(line) for line in (result.output_dir / "metrics.jsonl").read_text().splitlines()]
    trained = {line["step"]: set(line) for line in lines if "loss" in line}
    assert set(trained) == {1, 2, 3}, "the step that is evaluated has its loss too"
    assert trained[3] == trained[2] >= {"grad_norm", "learning_rate", "rollout/pass_rate"}
    evaluated = {line["step"]: set(line) for line in lines if "eval/pass_rate" in line}
    assert set(evaluated) == {0, 3}
    assert all(name.startswith("eval/") for name in evaluated[3] - {"step", "epoch"})
    assert {"loss", "eval/pass_rate"} <= set(result.history[-1])


def test_every_episode_and_metric_is_in_the_runs_folder(letter_options):
    result = train("grpo_roc", letter_options)
    with gzip.open(result.output_dir / "episodes" / "train-000000.jsonl.gz", "rt") as file:
        episodes = [json.loads(line) for line in file]
    assert len(episodes) == 4 * 4 * 2
    assert {"messages", "reward", "end", "statuses", "kept"} <= set(episodes[0])
    assert any(episode["kept"] for episode in episodes)
    assert not all(episode["kept"] for episode in episodes)
    metrics = [json.loads(line) for line in (result.output_dir / "metrics.jsonl").read_text().splitlines()]
    assert {"rollout/pass_rate", "rollout/groups_rejected", "rollout/turns", "kept/pass_rate", "loss"} <= set(
        metrics[0]
    )
    config = json.loads((result.output_dir / "config.json").read_text())
    assert (config["trainer"], config["group_size"]) == ("grpo_roc", 4)


def test_metrics_reach_a_tracker(letter_options):
    result = train("grpo", letter_options, report_to=["tensorboard"])
    assert list(result.output_dir.rglob("events.out.tfevents.*"))


def test_a_resumed_run_ends_where_an_unbroken_one_does(letter_options, tmp_path):
    whole = train("grpo_roc", letter_options, steps=4, save_every=2)
    broken = tmp_path / "broken"
    shutil.copytree(whole.output_dir / "checkpoint-2", broken / "checkpoint-2")
    resumed = train("grpo_roc", letter_options, steps=4, save_every=2, output_dir=str(broken), resume=True)
    expected, found = weights(whole.model_dir), weights(resumed.model_dir)
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=1e-3, atol=1e-4)


def test_the_same_seed_plays_the_same_episodes_and_another_one_does_not(letter_options, tmp_path):
    def played(where, seed):
        result = train("grpo", letter_options, steps=1, output_dir=str(tmp_path / where), seed=seed)
        with gzip.open(result.output_dir / "episodes" / "train-000000.jsonl.gz", "rt") as file:
            return [json.loads(line)["messages"] for line in file]

    one = played("one", 5)
    assert played("two", 5) == one
    assert played("three", 6) != one


def test_a_step_with_nothing_to_learn_has_no_gradient(letter_options, letter_env):
    class OnceUneven(letter_env):
        """Every reward is 1, but for those of the first step's episodes (4 problems, 8 episodes each)."""

        episodes = 0

        def step(self, action):
            OnceUneven.episodes += 1
            self._reward = None if OnceUneven.episodes <= 4 * 8 else 1.0
            return super().step(action)

    history = train("grpo_roc", letter_options, env=OnceUneven).history
    assert history[0]["rollout/groups_rejected"] < 1 == history[1]["rollout/groups_rejected"]
    assert history[0]["grad_norm"] > 0
    assert history[1]["grad_norm"] == 0


def test_a_run_with_nothing_to_learn_changes_no_weight(letter_options, letter_env):
    before = weights(letter_options["model"])
    result = train("grpo_roc", letter_options, env_options={"reward": 1.0})
    for name, value in weights(result.model_dir).items():
        assert torch.equal(value, before[name]), name
    assert result.history[0]["rollout/groups_rejected"] == 1


def test_a_folder_that_holds_a_run_is_not_overwritten(letter_options):
    train("grpo", letter_options)
    with pytest.raises(ConfigurationError, match=r"holds a run already.*resume="):
        train("grpo", letter_options)


def test_a_run_whose_environment_always_fails_stops_and_shows_the_cause(letter_options, letter_env):
    class Broken(letter_env):
        def step(self, action):
            raise RuntimeError("the disk is on fire")

    with pytest.raises(RolloutError, match="the disk is on fire"):
        train("grpo", letter_options, env=Broken)


def test_one_failing_episode_in_ten_stops_nothing_and_trains_nothing(letter_options, letter_env):
    class Shaky(letter_env):
        steps = 0

        def step(self, action):
            Shaky.steps += 1
            if Shaky.steps % 10 == 0:
                raise RuntimeError("lost")
            return super().step(action)

    result = train("grpo_roc", letter_options, env=Shaky)
    assert 0 < result.history[0]["rollout/unavailable"] < 0.2
    assert not math.isnan(result.history[-1]["loss"])


@pytest.mark.parametrize(
    ("problems", "size", "rows", "processes", "shape"),
    [
        (8, 8, 64, 1, (64, 1)),
        (8, 8, 8, 1, (8, 8)),
        (8, 8, 24, 1, (16, 4)),
        (8, 8, 64, 2, (32, 1)),
        (3, 5, 4, 1, (3, 5)),
    ],
)
def test_rows_make_up_whole_groups(problems, size, rows, processes, shape, letter_options):
    config = trainers.TRAINERS.get("grpo").configure(
        {**letter_options, "problems_per_step": problems, "group_size": size, "rows_per_device": rows}
    )
    assert batch_shape(config, processes) == shape


def test_a_group_is_never_split_between_processes(letter_options):
    config = trainers.TRAINERS.get("grpo").configure({**letter_options, "problems_per_step": 3})
    with pytest.raises(ConfigurationError, match="multiple of 2"):
        batch_shape(config, 2)


def test_adapters_train_and_the_frozen_weights_stay(letter_options):
    before = weights(letter_options["model"])
    trainer = trainers.make("grpo", **{**letter_options, "lora_rank": 2})
    try:
        result = trainer.train()
        after = trainer.trl.model.get_base_model().state_dict()
    finally:
        trainer.close()
    frozen = {name.replace(".base_layer", ""): value for name, value in after.items() if "lora_" not in name}
    assert set(frozen) == set(before)
    for name, value in frozen.items():
        assert torch.equal(value, before[name]), name
    adapter = load_file(result.model_dir / "adapter_model.safetensors")
    # The second of the two starts at zero, so that an adapter that has not learned changes nothing.
    second = [value for name, value in adapter.items() if "lora_B" in name]
    assert second
    assert all(value.abs().max() > 0 for value in second)


def test_several_updates_train_on_the_episodes_of_one_rollout(letter_options):
    result = train("grpo_roc", letter_options, updates_per_rollout=2, steps=4)
    assert [line["step"] for line in result.history] == [1, 2, 3, 4]
    played = sorted(path.name for path in (result.output_dir / "episodes").iterdir())
    assert played == ["train-000000.jsonl.gz", "train-000002.jsonl.gz"]
    assert ["rollout/pass_rate" in line for line in result.history] == [True, False, True, False]
    assert all(line["grad_norm"] > 0 for line in result.history)


def test_small_batches_make_the_update_of_a_large_one(letter_options, tmp_path):
    large = train("grpo_roc", letter_options, steps=1)
    trainer = trainers.make(
        "grpo_roc", **{**letter_options, "rows_per_device": 4, "steps": 1, "output_dir": str(tmp_path / "small")}
    )
    forward, sizes = trainer.trl._compute_loss, []
    trainer.trl._compute_loss = lambda model, inputs: (
        sizes.append(len(inputs["completion_ids"])),
        forward(model, inputs),
    )[1]
    try:
        small = trainer.train()
    finally:
        trainer.close()
    assert sizes == [4] * 4
    assert small.history[0]["grad_norm"] == pytest.approx(large.history[0]["grad_norm"], rel=1e-3)
    expected, found = weights(large.model_dir), weights(small.model_dir)
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=1e-3, atol=1e-4)


def test_a_math_environment_trains_with_its_real_tool(letter_options):
    result = train(
        "grpo_roc",
        letter_options,
        env="rstar2/MathTool-v0",
        env_options={"problems": "arithmetic:level=1", "max_turns": 2},
        max_episode_tokens=64,
        max_turn_tokens=16,
        steps=1,
    )
    assert result.history[0]["rollout/episodes"] == 32


def test_a_model_that_is_not_there_is_named(letter_options, tmp_path):
    with pytest.raises(ConfigurationError, match="nowhere"):
        trainers.make("grpo", **{**letter_options, "model": str(tmp_path / "nowhere")})


def test_a_custom_gymnasium_id_is_made_with_its_options(letter_options, letter_env):
    gym.register("tests/Letter-v0", entry_point=letter_env)
    try:
        assert train("grpo", letter_options, env="tests/Letter-v0", steps=1).history
    finally:
        del gym.registry["tests/Letter-v0"]


def test_the_run_folder_is_where_it_was_asked_for(letter_options):
    result = train("grpo", letter_options, steps=1)
    assert result.output_dir == Path(letter_options["output_dir"])
    assert (result.output_dir / "final" / "config.json").exists()


def test_training_and_evaluation_have_wrappers_of_their_own(letter_options, tmp_path):
    shaped = "reward_shaping:components=answer_format,task_weight=0"
    wrappers = [shaped, f"record_episodes:path={tmp_path}/train.jsonl"]
    evaluation = {"eval_every": 2, "eval_episodes": 4, "eval_env_options": {}}
    result = train(
        "grpo",
        letter_options,
        wrappers=wrappers,
        eval_wrappers=[f"record_episodes:path={tmp_path}/eval.jsonl"],
        **evaluation,
    )
    trained, evaluated = (read_episodes(tmp_path / f"{name}.jsonl") for name in ("train", "eval"))
    assert len(trained) == 2 * 4 * 4
    assert len(evaluated) == 2 * 4
    assert all(set(line["info"]["reward_components"]) == {"task", "answer_format"} for line in trained)
    assert not any("reward_components" in line["info"] for line in evaluated)
    config = json.loads((result.output_dir / "config.json").read_text())
    assert config["wrappers"] == wrappers
