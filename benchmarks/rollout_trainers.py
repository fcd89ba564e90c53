"""TRL's side of ``benchmarks/rollout.py``: its ``environment_factory`` loop, and optimizer steps on given rows."""

from __future__ import annotations

import dataclasses
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")

import gymnasium as gym
import torch
from datasets import Dataset
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PrinterCallback,
    TrainerCallback,
)
from trl import GRPOConfig, GRPOTrainer
from trl.chat_template_utils import qwen3_template

from rstar2_env.adapters.trl import environment_factory, hand_in
from rstar2_env.core.episode import Episode
from rstar2_env.core.row import Row
from rstar2_env.trainers.backends.trl.arguments import arguments
from rstar2_env.trainers.backends.trl.loss.objective import Objective
from rstar2_env.trainers.backends.trl.loss.pending_rows import BatchLayout
from rstar2_env.trainers.backends.trl.trainer import CollectorTrainer
from rstar2_env.trainers.base import TRAINERS
from rstar2_env.trainers.options.parts import make_parts
from rstar2_env.trainers.samplers.uniform import Uniform
from rstar2_env.trainers.step.batch import Batch
from rstar2_env.trainers.step.collector import Collector
from rstar2_env.trainers.step.collector_parts import StepOptions, StepServices

STEPS = 3
"""Optimizer steps of one run, of which the first is not counted."""


def trl_config(rows: int, group_size: int, tokens: int, **options: Any) -> GRPOConfig:
    """TRL's configuration for one process on a CPU; what is not named here is as TRL has it."""
    return GRPOConfig(
        **{
            "output_dir": tempfile.gettempdir(),
            "per_device_train_batch_size": rows,
            "num_generations": group_size,
            "max_completion_length": tokens,
            "temperature": 1.0,
            "use_cpu": True,
            "bf16": False,
            "gradient_checkpointing": False,
            "dataloader_pin_memory": False,
            "save_strategy": "no",
            "report_to": [],
            "disable_tqdm": True,
            "logging_steps": 1000,
            "log_level": "error",
            "epsilon_high": 0.28,
            **options,
        }
    )


class TrlLoop:
    """A ``GRPOTrainer`` with ``environment_factory``, of which only the generation step is used."""

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        make_env: Callable[[], gym.Env[str, str]],
        config: GRPOConfig,
    ) -> None:
        # TRL knows how to read the calls of the templates that it ships; ours writes them as Qwen3's does.
        tokenizer.response_template = qwen3_template
        self._trainer = GRPOTrainer(
            model=model,
            reward_funcs=[hand_in],
            args=config,
            train_dataset=Dataset.from_list([self._row("p0", 0)]),
            processing_class=tokenizer,
            environment_factory=environment_factory(make_env),
        )
        if config.use_vllm:  # it loaded the model's folder, and these are the same weights
            self._trainer._last_loaded_step = self._trainer.state.global_step
        self._size = config.num_generations

    def play(self, problems: Sequence[str], seed: int) -> int:
        """Play a group of each problem; returns how many tokens the policy wrote."""
        torch.manual_seed(seed)
        inputs = [self._row(problem, seed) for problem in problems for _ in range(self._size)]
        self._trainer.model.train()
        output = self._trainer._generate_and_score_completions(inputs)
        return int((output["completion_mask"] * output["tool_mask"]).sum())

    @property
    def episodes(self) -> list[Episode]:
        """Return the episodes that were played last."""
        return [environment.episode for environment in self._trainer.environments]

    @staticmethod
    def _row(problem: str, seed: int) -> dict[str, Any]:
        return {"prompt": [{"role": "user", "content": ""}], "problem_id": problem, "seed": seed}


class _Clock(TrainerCallback):
    """CPU seconds of each optimizer step, the rows' arrival included."""

    def __init__(self) -> None:
        self.steps: list[float] = []

    def on_step_begin(self, *args: Any, **kwargs: Any) -> None:
        self._began = time.process_time()

    def on_step_end(self, *args: Any, **kwargs: Any) -> None:
        self.steps.append(time.process_time() - self._began)


class _Recorded:
    """A rollout part that plays nothing, and a player that is asked for nothing: the same groups at every step."""

    max_in_flight = 1

    def __init__(self, groups: Sequence[Sequence[Episode]]) -> None:
        self._groups = groups

    async def __call__(self, starts: Sequence[Any], size: int, play: Any) -> list[list[Episode]]:
        return [list(group) for group in self._groups]

    def check(self, episodes: Sequence[Episode]) -> None:
        """Nothing failed."""


class _Kept:
    """A collector, and the rows that it gave at each step."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self.rows: list[list[Row]] = []

    def collect(self, step: int) -> Batch:
        """Collect, and keep the rows."""
        batch = self._collector.collect(step)
        self.rows.append(batch.rows)
        return batch


class EpisodeSteps:
    """Optimizer steps on recorded episodes: by GRPO-RoC, which chooses, and by TRL, which is given the chosen.

    Args:
        policy: Folder of the policy.
        recorded: Groups of 2G episodes.
        group_size: G.
        tokens: Most tokens of an episode.
    """

    def __init__(self, policy: Path, recorded: Sequence[Sequence[Episode]], group_size: int, tokens: int) -> None:
        self._policy, self._recorded, self._size, self._tokens = policy, recorded, group_size, tokens
        self._kept: list[list[Row]] = []

    def ours(self) -> float:
        """Mean CPU seconds of a step of GRPO-RoC."""
        config = TRAINERS.get("grpo_roc").configure({"model": str(self._policy)})
        recorded = _Recorded(self._recorded)
        parts = dataclasses.replace(make_parts(config), rollout=recorded)
        count = len(self._recorded) * self._size
        collector = _Kept(
            Collector(
                parts,
                StepOptions(problems_per_step=len(self._recorded), group_size=self._size, oversample=2),
                StepServices(recorded, Uniform()),  # type: ignore[arg-type]  # it plays nothing
            )
        )
        found = self._run(
            lambda folder, **options: CollectorTrainer(
                collector=collector,
                objective=Objective(parts.terms, parts.aggregation, parts.correction),
                shape=BatchLayout(count * (self._tokens + max(len(one.prompt_ids) for one in self._recorded[0]))),
                args=arguments(folder, **PLAIN, max_steps=STEPS),
                **options,
            )
        )
        self._kept = collector.rows
        return found

    def trl(self) -> float:
        """Mean CPU seconds of a step of TRL's trainer on the rows that the steps of ``ours`` kept."""
        count = len(self._recorded) * self._size

        def rows(prompts: Sequence[Any], trainer: GRPOTrainer) -> dict[str, Any]:
            return given_rows(self._kept[trainer.state.global_step], count)

        return self._run(
            lambda folder, **options: GRPOTrainer(
                rollout_func=rows,
                reward_funcs=[given_reward],
                args=trl_config(count, self._size, self._tokens, output_dir=folder, max_steps=STEPS),
                train_dataset=Dataset.from_dict({"prompt": ["-"] * count}),
                **options,
            )
        )

    def _run(self, build: Callable[..., Any]) -> float:
        return step_seconds(self._policy, build)


PLAIN: dict[str, Any] = {
    "use_cpu": True,
    "bf16": False,
    "gradient_checkpointing": False,
    "save_strategy": "no",
    "report_to": [],
    "logging_steps": 1000,
    "log_level": "error",
}
"""Arguments of transformers for one process on a CPU that only trains."""


def given_rows(rows: Sequence[Row], count: int) -> dict[str, Any]:
    """What TRL's ``rollout_func`` returns for these rows; those that are missing are rows of one masked token."""
    missing = count - len(rows)
    return {
        "prompt_ids": [row.prompt_ids for row in rows] + [[0]] * missing,
        "completion_ids": [row.completion_ids for row in rows] + [[0]] * missing,
        "env_mask": [row.mask for row in rows] + [[0]] * missing,
        "logprobs": [row.logprobs for row in rows] + [[0.0]] * missing,
        "reward": [float(row.advantage) for row in rows] + [0.0] * missing,
    }


def given_reward(**columns: Any) -> list[float]:
    """The reward of each row that ``given_rows`` gave."""
    return list(columns["reward"])


def step_seconds(policy: Path, build: Callable[..., Any]) -> float:
    """Mean CPU seconds of the steps of a trainer, but for the first.

    Args:
        policy: Folder of the model.
        build: Makes the trainer, of a folder, a model, its tokenizer and callbacks.
    """
    clock = _Clock()
    with tempfile.TemporaryDirectory() as folder:
        trainer = build(
            folder,
            model=AutoModelForCausalLM.from_pretrained(policy),
            processing_class=AutoTokenizer.from_pretrained(policy, padding_side="left"),
            callbacks=[clock],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return sum(clock.steps[1:]) / (len(clock.steps) - 1)
