"""The learning rate and its warm-up."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import Trainer, TrainingArguments

from rstar2_env.models.suggested_learning_rates import suggest
from rstar2_env.trainers.backends.trl.arguments import WarmsUp, run_arguments
from rstar2_env.trainers.options.config import ModelOptions, TrainConfig


class Warming(WarmsUp, Trainer):
    """A trainer of transformers with the warm-up of this package."""


@pytest.mark.parametrize("kind", ["constant_with_warmup", "linear", "cosine"])
def test_the_first_of_the_warm_up_steps_has_a_rate_above_zero(kind: str, tmp_path: Path) -> None:
    arguments = TrainingArguments(
        str(tmp_path), learning_rate=0.8, warmup_steps=4, lr_scheduler_type=kind, use_cpu=True
    )
    trainer = Warming(model=torch.nn.Linear(2, 2), args=arguments)
    trainer.create_optimizer()
    scheduler = trainer.create_scheduler(10)
    rates = []
    for _ in range(5):
        rates.append(trainer.optimizer.param_groups[0]["lr"])
        assert scheduler.get_last_lr()[0] == rates[-1]
        trainer.optimizer.step()
        scheduler.step()
    assert rates == pytest.approx([0.2, 0.4, 0.6, 0.8, 0.8])


def test_without_a_warm_up_the_schedule_is_that_of_transformers(tmp_path: Path) -> None:
    arguments = TrainingArguments(str(tmp_path), learning_rate=0.8, lr_scheduler_type="linear", use_cpu=True)
    trainer = Warming(model=torch.nn.Linear(2, 2), args=arguments)
    trainer.create_optimizer()
    scheduler = trainer.create_scheduler(4)
    rates = []
    for _ in range(4):
        rates.append(trainer.optimizer.param_groups[0]["lr"])
        trainer.optimizer.step()
        scheduler.step()
    assert rates == pytest.approx([0.8, 0.6, 0.4, 0.2])


@pytest.mark.parametrize(
    ("optim", "steps", "rate", "warmup"),
    [
        ({}, 100, 1e-5, 5),
        ({}, 30, 1e-5, 3),
        ({"learning_rate": 1e-4}, 100, 1e-4, 0),
        ({"warmup_steps": 7}, 30, 1e-5, 7),
        ({"warmup_steps": 0}, 100, 1e-5, 0),
        ({"learning_rate": 1e-4, "warmup_steps": 2}, 100, 1e-4, 2),
    ],
)
def test_a_run_without_a_rate_takes_rate_and_warm_up_of_the_size(
    optim: dict[str, float], steps: int, rate: float, warmup: int, tmp_path: Path
) -> None:
    config = TrainConfig(ModelOptions(path="m"))
    config.run.output_dir, config.run.steps = str(tmp_path), steps
    for name, value in optim.items():
        setattr(config.optim, name, value)
    made = run_arguments(config, suggest(135_000_000))
    assert (made.learning_rate, made.warmup_steps) == (rate, warmup)
