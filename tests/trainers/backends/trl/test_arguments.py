"""The warm-up of the learning rate."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import Trainer, TrainingArguments

from rstar2_env.trainers.backends.trl.arguments import WarmsUp


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
