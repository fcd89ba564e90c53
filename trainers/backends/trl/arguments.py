"""The arguments of TRL and transformers for a run."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from torch.optim.lr_scheduler import LambdaLR
from transformers import Trainer
from trl import GRPOConfig

from rstar2_env.models.suggested_learning_rates import SuggestedOptions

from ...options.config import TrainConfig
from .model import precision_options

_SHAPE = {
    # One item of the data loader is one optimizer step; the trainer makes its own micro-batches. TRL requires the other
    # two values, which are not used.
    "gradient_accumulation_steps": 1,
    "per_device_train_batch_size": 2,
    "num_generations": 2,
}
_FIXED = {
    **_SHAPE,
    "disable_tqdm": True,
    "ignore_data_skip": True,
    "dataloader_pin_memory": False,
    "logging_nan_inf_filter": False,
    "save_total_limit": None,  # the trainer deletes old checkpoints itself, once a newer one is complete
}


def quiet() -> AbstractContextManager[Any]:
    """Context manager that suppresses transformers' warnings about arguments that TRL itself sets."""
    return warnings.catch_warnings(action="ignore", category=FutureWarning)


def arguments(output_dir: str | os.PathLike[str], **options: Any) -> GRPOConfig:
    """Make the arguments of ``CollectorTrainer``.

    Args:
        output_dir: The run's folder.
        **options: Fields of ``GRPOConfig``.
    """
    with quiet():
        return GRPOConfig(output_dir=os.fspath(output_dir), **{**_FIXED, **options})


_Trainer: Any = Trainer
"""transformers' ``Trainer``, untyped like TRL's trainers, so that subclasses may change the types of its methods."""


class WarmsUp(_Trainer):
    """Mixin for trainers whose warm-up begins above a learning rate of 0."""

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        """Create the scheduler; in a warm-up of n steps, step i (from 1) has i/n of the peak learning rate.

        The schedules of transformers begin at a rate of 0, with which the first step would not change the weights.
        """
        is_new = self.lr_scheduler is None
        scheduler: Any = super().create_scheduler(num_training_steps, optimizer)
        steps = self.args.get_warmup_steps(num_training_steps)
        if is_new and steps and isinstance(scheduler, LambdaLR):
            scheduler.lr_lambdas = [_warming_up(factor, steps) for factor in scheduler.lr_lambdas]
            scheduler._last_lr = [
                base * factor(0) for base, factor in zip(scheduler.base_lrs, scheduler.lr_lambdas, strict=True)
            ]
            for group, rate in zip(scheduler.optimizer.param_groups, scheduler._last_lr, strict=True):
                group["lr"] = rate
        return scheduler


def _warming_up(factor: Callable[[int], float], steps: int) -> Callable[[int], float]:
    return lambda step: (step + 1) / steps if step < steps else factor(step)


def run_arguments(config: TrainConfig, suggested: SuggestedOptions, **sharding: Any) -> GRPOConfig:
    """Make the arguments of a run; ``optim.trl_options`` override the other options.

    Args:
        config: Options of the run.
        suggested: Learning rate and warm-up for the size of the model, used if ``optim`` sets no learning rate.
        **sharding: Fields that the run's sharding requires.
    """
    run, optim = config.run, config.optim
    warmup = optim.warmup_steps
    if warmup is None:
        warmup = 0 if optim.learning_rate or optim.begin_from else min(suggested.warmup_steps, run.steps // 10)
    options: dict[str, Any] = {
        "seed": run.seed,
        "max_steps": run.steps,
        "learning_rate": optim.learning_rate or suggested.learning_rate,
        "warmup_steps": warmup,
        "lr_scheduler_type": optim.lr_scheduler,
        "weight_decay": optim.weight_decay,
        "max_grad_norm": optim.max_grad_norm,
        "temperature": config.rollout.temperature,
        "logging_steps": run.log_every,
        "save_strategy": "steps",
        "save_steps": run.checkpoint_every,
        "report_to": run.report_to,
        **precision_options(config.model),
        **sharding,
    }
    return arguments(run.output_dir, **{**options, **optim.trl_options})
