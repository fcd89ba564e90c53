"""TRL's side of ``benchmarks/rollout.py``: its ``environment_factory`` loop, and optimizer steps on given rows."""

from __future__ import annotations

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
from rstar2_env.trainers.backends.trl.trainer import REWARD_COLUMN, RolloutGRPOTrainer
from rstar2_env.trainers.base import TRAINERS
from rstar2_env.trainers.metrics import metrics

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
        """What was played last."""
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
        self._kept: list[Any] = []

    def ours(self) -> float:
        """Mean CPU seconds of a step of GRPO-RoC."""
        from rstar2_env.trainers.base import make_advantage, make_selector

        recipe = TRAINERS.get("grpo_roc").configure({"model": str(self._policy)})

        def on_batch(batch: Any) -> dict[str, float]:
            self._kept.append(batch)
            figures = metrics(batch.played)
            return {name: value for name, value in figures.items() if value == value}

        def build(**options: Any) -> GRPOTrainer:
            return RolloutGRPOTrainer(
                play=lambda count: [list(group) for group in self._recorded],
                selector=make_selector(recipe),
                advantage=make_advantage(recipe),
                group_size=self._size,
                on_batch=on_batch,
                correct_importance=False,
                importance_cap=2.0,
                rng_seed=0,
                **options,
            )

        self._kept.clear()
        return self._run(build)

    def trl(self) -> float:
        """Mean CPU seconds of a step of TRL's trainer on the rows that the steps of ``ours`` kept."""

        def rows(prompts: Sequence[Any], trainer: GRPOTrainer) -> dict[str, Any]:
            batch = self._kept[trainer.state.global_step]
            return {
                "prompt_ids": [row.prompt_ids for row in batch.rows],
                "completion_ids": [row.completion_ids for row in batch.rows],
                "env_mask": [row.mask for row in batch.rows],
                "logprobs": [row.logprobs for row in batch.rows],
                REWARD_COLUMN: batch.rewards,
            }

        def reward(**columns: Any) -> list[float]:
            return list(columns[REWARD_COLUMN])

        return self._run(lambda **options: GRPOTrainer(rollout_func=rows, reward_funcs=[reward], **options))

    def _run(self, build: Callable[..., Any]) -> float:
        clock = _Clock()
        count = len(self._recorded) * self._size
        with tempfile.TemporaryDirectory() as folder:
            trainer = build(
                model=AutoModelForCausalLM.from_pretrained(self._policy),
                processing_class=AutoTokenizer.from_pretrained(self._policy, padding_side="left"),
                args=trl_config(count, self._size, self._tokens, output_dir=folder, max_steps=STEPS),
                train_dataset=Dataset.from_dict({"prompt": ["-"] * count}),
                callbacks=[clock],
            )
            trainer.remove_callback(PrinterCallback)
            trainer.train()
        return sum(clock.steps[1:]) / (len(clock.steps) - 1)
