"""A run begins with the state of an earlier run's optimizer, or says before it trains why that does not fit."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from row_trainer import row_trainer
from torch import Tensor
from training_rows import few_rows, row
from transformers import TrainerCallback

from rstar2_env import trainers
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.run_folder import read_run

pytestmark = pytest.mark.train
ADAM = {"optim": "adamw_torch", "weight_decay": 0.1, "learning_rate": 1e-2}
SAVED = {"save_strategy": "steps", "save_steps": 1}
ROLLOUTS = [few_rows(), [row(1, 4, 20, 1.0), row(2, 4, 10, -1.0)], [row(5, 4, 9, 0.5)], [row(2, 3, 14, 0.5)]]
STOPPED = 2


class Beginning(TrainerCallback):
    """Keeps the optimizer's state as it is when training begins, and the learning rates of all steps."""

    def __init__(self) -> None:
        self.trainer: Any = None
        self.state: dict[str, Tensor] = {}

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        self.state = state_of(self.trainer)


def state_of(trainer: Any) -> dict[str, Tensor]:
    return {name: one.clone() for name, one in trainer._state().tensors().items() if name.startswith("optimizer/")}


def trained(model: Any, folder: Path, rollouts: Any, **options: Any) -> Any:
    """Train on rows: the trainer, what it showed, and the optimizer's state with which it began."""
    beginning = Beginning()
    resume = options.pop("resume", None)
    trainer, followed = row_trainer(model, folder, rollouts, **{**ADAM, **SAVED, **options})
    beginning.trainer = trainer
    trainer.add_callback(beginning)
    trainer.train(resume_from_checkpoint=resume)
    return trainer, followed, beginning.state


@pytest.fixture
def first(tiny_model: Path, tmp_path: Path) -> Any:
    """An earlier run of two steps, its weights saved, and its trainer."""
    trainer, *_ = trained(tiny_model, tmp_path / "first", ROLLOUTS[:STOPPED])
    trainer.save_model(str(tmp_path / "first" / "final"))
    trainer.processing_class.save_pretrained(tmp_path / "first" / "final")
    return trainer


def checkpoint(folder: Path, step: int = STOPPED) -> Path:
    return folder / f"checkpoint-{step}"


def assert_equal(found: dict[str, Tensor], wanted: dict[str, Tensor]) -> None:
    assert found.keys() == wanted.keys()
    assert all(torch.equal(found[name], one) for name, one in wanted.items())


def test_two_runs_with_a_carried_optimizer_are_one_run_bit_by_bit(first: Any, tiny_model: Path, tmp_path: Path) -> None:
    _, whole, _ = trained(tiny_model, tmp_path / "whole", ROLLOUTS)
    start = tmp_path / "first" / "final"
    _, carried, began = trained(
        start, tmp_path / "second", ROLLOUTS[STOPPED:], begin_from=checkpoint(tmp_path / "first")
    )
    assert_equal(began, state_of(first))
    assert {float(value) for name, value in began.items() if name.endswith("/step")} == {STOPPED}
    for after, wanted in zip(carried.weights, whole.weights[STOPPED:], strict=True):
        assert_equal(after, wanted)

    _, fresh, nothing = trained(start, tmp_path / "fresh", ROLLOUTS[STOPPED:])
    assert nothing == {}
    assert any(not torch.equal(value, whole.weights[STOPPED][name]) for name, value in fresh.weights[0].items())


def test_the_schedule_and_the_weights_are_the_new_runs_own(first: Any, tiny_model: Path, tmp_path: Path) -> None:
    warm = {"lr_scheduler_type": "constant_with_warmup", "warmup_steps": 2, "learning_rate": 4e-3, "weight_decay": 0.3}
    trainer, followed, began = trained(
        tiny_model, tmp_path / "second", ROLLOUTS[:3], begin_from=checkpoint(tmp_path / "first"), **warm
    )
    assert_equal(began, state_of(first))
    assert [line["learning_rate"] for line in followed.lines] == [2e-3, 4e-3, 4e-3]
    assert [group["weight_decay"] for group in trainer._optimizer().param_groups] == [0.3, 0.0]
    # The first step moves the weights that the run was given by about its learning rate.
    given = dict(row_trainer(tiny_model, tmp_path / "x", ROLLOUTS)[0].model.named_parameters())
    moved = max(float((followed.weights[0][name] - value.detach()).abs().max()) for name, value in given.items())
    assert 0 < moved < 1e-2


def test_a_run_that_resumes_takes_its_own_checkpoint(first: Any, tmp_path: Path) -> None:
    begin = {"begin_from": checkpoint(tmp_path / "first")}
    start, folder = tmp_path / "first" / "final", tmp_path / "second"
    _, undisturbed, _ = trained(start, folder, ROLLOUTS, **begin, keep_checkpoints=4)
    left = (checkpoint(folder, 4) / "optimizer.pt").read_bytes()
    _, resumed, began = trained(start, folder, ROLLOUTS, **begin, keep_checkpoints=4, resume=str(checkpoint(folder, 3)))
    assert {float(value) for name, value in began.items() if name.endswith("/step")} == {STOPPED + 3}
    assert_equal(resumed.weights[-1], undisturbed.weights[-1])
    # What a stage of a pipeline leaves for the next is the same file, killed or not.
    assert (checkpoint(folder, 4) / "optimizer.pt").read_bytes() == left


MISFITS: dict[str, tuple[dict[str, Any], str]] = {
    "adapters": (
        {"lora": True},
        r"to 13 weights of the model \(only these: .*\), but this run trains 14 LoRA adapters "
        r"\(only these: base_model\..*, \.\.\.\)",
    ),
    "class": ({"optim": "sgd"}, r"belongs to the optimizer AdamW, but this run uses SGD \(optim\.trl_options\.optim\)"),
    "sharding": ({"sharding": "fsdp2"}, "the state was written without sharding, but this run has sharding='fsdp2'"),
}


@pytest.mark.parametrize("name", MISFITS)
def test_what_does_not_fit_is_an_error_that_says_both_before_any_training(
    name: str, first: Any, tiny_model: Path, tmp_path: Path
) -> None:
    options, message = MISFITS[name]
    begin_from = checkpoint(tmp_path / "first")
    with pytest.raises(ConfigurationError, match=message) as raised:
        row_trainer(tiny_model, tmp_path / "second", ROLLOUTS, **{**ADAM, **options}, begin_from=begin_from)
    assert str(begin_from) in str(raised.value)


def test_adapters_do_not_fit_the_whole_model(tiny_model: Path, tmp_path: Path) -> None:
    trained(tiny_model, tmp_path / "first", ROLLOUTS[:1], lora=True)
    with pytest.raises(ConfigurationError, match=r"LoRA adapters .*, but this run trains 13 weights of the model"):
        row_trainer(tiny_model, tmp_path / "second", ROLLOUTS, begin_from=checkpoint(tmp_path / "first", 1))


def test_other_shapes_and_other_groups_do_not_fit(first: Any, tiny_model: Path, tmp_path: Path) -> None:
    file = checkpoint(tmp_path / "first") / "optimizer.json"
    said = json.loads(file.read_text())
    decayed, plain = said["groups"]
    name, shape = next(iter(decayed.items()))

    def refused(groups: Any) -> str:
        file.write_text(json.dumps({**said, "groups": groups}))
        with pytest.raises(ConfigurationError) as raised:
            row_trainer(tiny_model, tmp_path / "second", ROLLOUTS, **ADAM, begin_from=checkpoint(tmp_path / "first"))
        return str(raised.value)

    assert f"{name} has the shape (1, 2) in the checkpoint and {tuple(shape)} in this run" in refused(
        [{**decayed, name: [1, 2]}, plain]
    )
    moved = [{key: value for key, value in decayed.items() if key != name}, {**plain, name: shape}]
    assert f"{name} is in parameter group 2 in the checkpoint and in group 1 in this run" in refused(moved)
    file.write_text("{")
    with pytest.raises(ConfigurationError, match=r"optimizer\.json of the checkpoint cannot be read"):
        row_trainer(tiny_model, tmp_path / "second", ROLLOUTS, **ADAM, begin_from=checkpoint(tmp_path / "first"))


def train(options: dict[str, Any], **changes: Any) -> Path:
    trainer = trainers.make("grpo_clip_higher", **{**options, **changes})
    try:
        return trainer.train().output_dir
    finally:
        trainer.close()


def steps_in(folder: Path) -> float:
    """How many steps the optimizer of a run's last checkpoint has taken."""
    newest = read_run(folder).checkpoints[-1].path
    state = torch.load(newest / "optimizer.pt", weights_only=True)["state"]
    (steps,) = {float(one["step"]) for one in state.values()}
    return steps


def test_a_run_begins_from_the_folder_of_another_and_resumes_without_it(
    letter_options: dict[str, Any], tmp_path: Path
) -> None:
    # With a divergence every step has a gradient, whatever the rewards are.
    options = {**letter_options, "loss": ["ppo_clip", "kl"], "selector": "all", "problems_per_step": 8}
    first = train(options, steps=2, save_every=0)
    begin = {"model": str(first / "final"), "output_dir": str(tmp_path / "second"), "begin_from": first}
    options |= {**begin, "steps": 3, "save_every": 1}
    second = train(options)
    assert (steps_in(first), steps_in(second)) == (2, 2 + 3)
    assert read_run(second).config["optim"]["begin_from"] == str(first)
    for newest in ("checkpoint-3", "final"):
        shutil.rmtree(second / newest)
    shutil.move(first / "checkpoint-2", tmp_path / "elsewhere")
    train(options, resume=True)
    assert steps_in(second) == 2 + 3


def test_a_misfit_leaves_no_run_behind(letter_options: dict[str, Any], tmp_path: Path) -> None:
    first = train(letter_options, steps=1)
    second = {**letter_options, "output_dir": str(tmp_path / "second"), "steps": 1}
    with pytest.raises(ConfigurationError, match="belongs to the optimizer AdamW, but this run uses SGD"):
        train(second, begin_from=first, trl_options={"optim": "sgd"})
    train(second)


def test_a_folder_without_a_checkpoint_is_refused(letter_options: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigurationError, match=r"empty does not contain a complete checkpoint") as raised:
        trainers.make("grpo_clip_higher", **letter_options, begin_from=tmp_path / "empty")
    assert raised.value.option == "optim.begin_from"
    first = train(letter_options, steps=1)
    (first / "checkpoint-1" / "optimizer.json").unlink()
    with pytest.raises(ConfigurationError, match=r"checkpoint-1 lacks the file optimizer\.json"):
        trainers.make(
            "grpo_clip_higher", **{**letter_options, "output_dir": str(tmp_path / "second"), "begin_from": first}
        )
