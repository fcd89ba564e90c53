"""The trainer on rows that a test gives, without episodes, environments or an engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from transformers import PrinterCallback, TrainerCallback

from rstar2_env.core.episode import Episode
from rstar2_env.core.row import Row
from rstar2_env.trainers.backends.trl.arguments import arguments
from rstar2_env.trainers.backends.trl.loss.objective import Objective
from rstar2_env.trainers.backends.trl.loss.pending_rows import BatchLayout
from rstar2_env.trainers.backends.trl.model import load_policy
from rstar2_env.trainers.backends.trl.sharding.choice import Sharding
from rstar2_env.trainers.backends.trl.trainer import CollectorTrainer
from rstar2_env.trainers.losses.aggregations import TokenMean
from rstar2_env.trainers.losses.corrections import NoCorrection
from rstar2_env.trainers.losses.ppo_clip import PpoClip
from rstar2_env.trainers.options.config import ModelOptions


@dataclass
class Given:
    """A collector that gives one list of rows after the other, begins anew at the end, and knows where it is."""

    rollouts: Sequence[list[Row]]
    cursor: int = 0
    asked: list[int] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    groups: list[list[Episode]] = field(default_factory=list)

    def collect(self, step: int) -> Given:
        """Return the next rows."""
        self.rows = list(self.rollouts[self.cursor % len(self.rollouts)])
        self.cursor += 1
        self.asked.append(step)
        return self

    def state_dict(self) -> dict[str, int]:
        """The cursor."""
        return {"cursor": self.cursor}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Go on from a cursor."""
        self.cursor = state["cursor"]


class Followed(TrainerCallback):
    """Keeps what was logged and the weights after each step."""

    def __init__(self) -> None:
        self.lines: list[dict[str, float]] = []
        self.weights: list[dict[str, Any]] = []

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Copy the weights."""
        self.weights.append({name: value.clone() for name, value in kwargs["model"].state_dict().items()})

    def on_log(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Keep the line of a step."""
        if "loss" in kwargs["logs"]:
            self.lines.append({"step": state.global_step, **kwargs["logs"]})


def row_trainer(
    model: str | Path,
    folder: str | Path,
    rollouts: Sequence[list[Row]],
    *,
    objective: Objective | None = None,
    shape: BatchLayout | None = None,
    reference: Any = None,
    teacher: Any = None,
    keep_checkpoints: int = 2,
    sharding: Sharding = "none",
    lora: bool = False,
    lora_rank: int = 0,
    waits: bool = False,
    begin_from: Path | None = None,
    export_dtype: torch.dtype | None = None,
    **options: Any,
) -> tuple[CollectorTrainer, Followed]:
    """A trainer of a model in a folder, on the given rows, and what it shows.

    Args:
        model: Folder of the model.
        folder: The run's folder.
        rollouts: The rows of one rollout after the other.
        objective: The loss; the clipped surrogate, if not given.
        shape: Micro-batches and updates.
        reference: Makes the reference model of the policy.
        teacher: Makes the teacher of the policy.
        keep_checkpoints: How many are kept.
        sharding: What several processes divide.
        lora: Train adapters, which change the model from the start.
        lora_rank: As in the options of a run; the folder may hold an adapter.
        waits: Leave the weights to the first process.
        export_dtype: The precision of exports.
        begin_from: A checkpoint of another trainer, with whose optimizer's state it begins.
        **options: Fields of ``GRPOConfig``.
    """
    dtype = "bfloat16" if options.get("bf16") else "float32"
    chosen = ModelOptions(str(model), dtype=dtype, lora_rank=lora_rank)
    policy: Any
    policy, tokenizer = load_policy(chosen, Path(folder), waits=waits)
    if lora:
        torch.manual_seed(1)
        adapters = LoraConfig(r=4, lora_alpha=4, target_modules="all-linear", init_lora_weights=False)
        policy = get_peft_model(policy, adapters)
    followed, given = Followed(), Given(rollouts)
    defaults = {
        "max_steps": len(rollouts),
        "learning_rate": 1e-2,
        "report_to": [],
        "save_strategy": "no",
        "use_cpu": True,
        "bf16": False,
        "gradient_checkpointing": False,
        "logging_steps": 1,
        "lr_scheduler_type": "constant",
    }
    trainer = CollectorTrainer(
        collector=given,
        objective=objective or Objective([PpoClip()], TokenMean(), NoCorrection()),
        shape=shape or BatchLayout(4096),
        reference=None if reference is None else reference(policy),
        teacher=None if teacher is None else teacher(policy),
        stateful={"collector": given},
        keep_checkpoints=keep_checkpoints,
        sharding=sharding,
        begin_from=begin_from,
        export_dtype=export_dtype,
        model=policy,
        processing_class=tokenizer,
        args=arguments(folder, **{**defaults, **options}),
        callbacks=[followed],
    )
    trainer.remove_callback(PrinterCallback)
    return trainer, followed
