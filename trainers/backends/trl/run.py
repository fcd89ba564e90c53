"""``TrlRun``: a trainer that connects engine, environments, selector and advantage to TRL's optimizer loop."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate.utils import gather_object
from datasets import Dataset
from transformers import PrinterCallback
from transformers.trainer_utils import get_last_checkpoint
from trl import GRPOConfig

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.problems import FiniteSource
from rstar2_env.rollout import Budget, EpisodeRequest, Player, SamplingParams, Settled
from rstar2_env.wrappers.make import make_env

from ...base import TrainResult, make_advantage, make_selector
from ...config import TrainConfig
from ...metrics import metrics
from ...samplers.fixed import ProblemSampler, Sampler, SeedSampler
from ...selectors.base import Settles
from .callbacks import BEST_DIR, Console, Evaluation, RunFiles
from .checks import check_config
from .engine import PolicyEngine, corrects_importance
from .model import codec, load_policy, lora, precision_options, processes
from .trainer import Batch, RolloutGRPOTrainer

FINAL_DIR = "final"
_EVAL_SEED = 1_000_003
"""Seed of evaluation; a constant, so that every evaluation of every run plays the same problems."""


class TrlRun:
    """One training run of a recipe on TRL.

    Args:
        name: Name of the recipe.
        config: Options of the run.

    Raises:
        ConfigurationError: The options contradict each other or do not fit the number of processes, or the folder holds
            an earlier run and ``resume`` is off.
    """

    def __init__(self, name: str, config: TrainConfig) -> None:
        self.name, self.config = name, config
        check_config(config)
        if config.threads is not None:
            torch.set_num_threads(config.threads)
        self._folder = Path(config.output_dir)
        shape = batch_shape(config, processes(config.process_timeout_s).num_processes)
        self._checkpoint = self._find_checkpoint()
        model, tokenizer = load_policy(config)
        self._files = RunFiles(self._folder, rank=processes().process_index, keep_episodes=config.keep_episodes)
        self._console = Console(name, self._files, visible=config.progress)
        with warnings.catch_warnings():
            # transformers warns about arguments that TRL itself sets.
            warnings.simplefilter("ignore", FutureWarning)
            self.trl = RolloutGRPOTrainer(
                play=self._play_groups,
                selector=make_selector(config),
                advantage=make_advantage(config),
                group_size=config.group_size,
                on_batch=self._on_batch,
                correct_importance=corrects_importance(config),
                importance_cap=config.importance_cap,
                rng_seed=config.seed,
                model=model,
                processing_class=tokenizer,
                args=self._arguments(shape),
                train_dataset=Dataset.from_dict({"prompt": ["-"] * (config.problems_per_step * 64)}),
                peft_config=lora(config),
                callbacks=[self._console],
            )
        self.trl.remove_callback(PrinterCallback)
        self.tokenizer = tokenizer
        self._policy = PolicyEngine(config, self.trl, tokenizer)
        self.engine = self._policy.engine
        chat = codec(config, tokenizer, model)
        self._players = {
            split: Player(
                partial(make_env, config.env, wrappers=wrappers, **options),
                self.engine,
                chat,
                sampling=SamplingParams(max_tokens=1, temperature=temperature, top_p=config.top_p, top_k=config.top_k),
                budget=Budget(
                    tokens=config.max_episode_tokens,
                    turn_tokens=config.max_turn_tokens,
                    wall_s=config.max_episode_seconds,
                ),
                max_in_flight=config.max_in_flight,
                max_failed=config.max_failed,
            )
            for split, options, wrappers, temperature in (
                ("train", config.env_options, config.wrappers, config.temperature),
                (
                    "eval",
                    {**config.env_options, **config.eval_env_options},
                    config.eval_wrappers,
                    config.eval_temperature,
                ),
            )
        }
        self._sampler = self._make_sampler(config.env_options, config.seed)
        self._evaluation: Evaluation | None = None

    def train(self) -> TrainResult:
        """Run all steps; see ``Trainer``."""
        config = self.config
        self._write_config()
        if config.eval_every:
            self._evaluation = Evaluation(
                self.evaluate, self._save, self.trl.log_apart, every=config.eval_every, folder=self._folder
            )
            self.trl.add_callback(self._evaluation)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)
                self.trl.train(resume_from_checkpoint=self._checkpoint)
        finally:
            self._console.close()
        self._save(str(self._folder / FINAL_DIR))
        evaluation = self._evaluation
        return TrainResult(
            output_dir=self._folder,
            model_dir=self._folder / (BEST_DIR if evaluation else FINAL_DIR),
            before=evaluation.before if evaluation else None,
            after=evaluation.after if evaluation else None,
            best_step=evaluation.best_step if evaluation else self.trl.state.global_step,
            history=self._files.history(),
        )

    def evaluate(self) -> dict[str, float]:
        """Play the held-out episodes, divided among the processes; see ``Trainer``."""
        config, state = self.config, processes()
        options = {**config.env_options, **config.eval_env_options}
        starts = self._make_sampler(options, _EVAL_SEED).starts(0, config.eval_episodes)
        requests = [
            EpisodeRequest(group=i, seed=start.seed, options=start.options, sampling_seed=_seed(_EVAL_SEED, i))
            for i, start in enumerate(starts)
        ]
        self._policy.update()
        episodes = self._play("eval", requests[state.process_index :: state.num_processes])
        gathered: list[Episode] = gather_object(episodes) if state.num_processes > 1 else episodes
        if state.is_main_process:
            self._files.episodes(f"eval-{self.trl.state.global_step:06d}", gathered)
        return metrics(gathered)

    def close(self) -> None:
        """Close the environments and the engine."""
        for player in self._players.values():
            player.close()
        self._policy.close()

    def _play(self, split: str, requests: list[EpisodeRequest], settled: Settled | None = None) -> list[Episode]:
        model: Any = self.trl.model
        training = model.training
        model.eval()
        try:
            return self._players[split].play(requests, settled=settled)
        finally:
            model.train(training)
            self._policy.rest()

    def _play_groups(self, count: int) -> list[list[Episode]]:
        config, step = self.config, self.trl.state.global_step
        self._policy.update()
        state = processes()
        first = state.process_index * count
        starts = self._sampler.starts(step, count * state.num_processes)[first : first + count]
        size = config.group_size * (config.oversample or 1)
        requests = [
            EpisodeRequest(
                group=first + group,
                seed=start.seed,
                options=start.options,
                sampling_seed=_seed(config.seed, step, first + group, member),
            )
            for group, start in enumerate(starts)
            for member in range(size)
        ]
        episodes = self._play("train", requests, self._settled)
        return [episodes[at : at + size] for at in range(0, len(episodes), size)]

    @property
    def _settled(self) -> Settled | None:
        selector = self.trl.selector
        if not self.config.early_stop or not isinstance(selector, Settles):
            return None
        return lambda group: selector.settled(group, self.config.group_size)

    def _on_batch(self, batch: Batch) -> dict[str, float]:
        step = self.trl.state.global_step
        kept = [row for row in batch.rows if row is not None]
        trained = {id(episode) for episode in kept}
        self._files.episodes(f"train-{step:06d}", batch.played, lambda episode: id(episode) in trained)
        figures = {f"rollout/{name}": value for name, value in metrics(batch.played).items()}
        figures |= {f"kept/{name}": value for name, value in metrics(kept).items()}
        figures["rollout/groups_rejected"] = batch.groups_rejected / batch.groups
        return {name: value for name, value in figures.items() if not math.isnan(value)}

    def _make_sampler(self, options: Mapping[str, Any], seed: int) -> Sampler:
        env = make_env(self.config.env, **options)
        try:
            source = getattr(env.unwrapped, "problems", None)
            return ProblemSampler(source.ids, seed) if isinstance(source, FiniteSource) else SeedSampler(seed)
        finally:
            env.close()

    def _save(self, folder: str) -> None:
        self.trl.save_model(folder)
        if self.trl.accelerator.is_main_process:
            self.tokenizer.save_pretrained(folder)

    def _write_config(self) -> None:
        if self.trl.accelerator.is_main_process:
            record = {"trainer": self.name, **self.config.record()}
            (self._folder / "config.json").write_text(json.dumps(record, indent=2, default=str))

    def _find_checkpoint(self) -> str | None:
        exists = self._folder.exists()
        checkpoint = get_last_checkpoint(str(self._folder)) if exists else None
        if self.config.resume:
            return checkpoint
        if exists and (checkpoint or (self._folder / "metrics.jsonl").exists()):
            raise ConfigurationError(
                f"{self._folder} holds a run already: choose another folder, or continue it.", option="resume"
            )
        return None

    def _arguments(self, shape: tuple[int, int]) -> GRPOConfig:
        config = self.config
        rows, accumulation = shape
        options: dict[str, Any] = {
            "output_dir": config.output_dir,
            "seed": config.seed,
            "max_steps": config.steps,
            "per_device_train_batch_size": rows,
            "gradient_accumulation_steps": accumulation,
            "steps_per_generation": accumulation,
            "num_generations": config.group_size,
            "num_iterations": config.updates_per_rollout,
            "learning_rate": config.learning_rate,
            "warmup_steps": config.warmup_steps,
            "lr_scheduler_type": config.lr_scheduler,
            "weight_decay": config.weight_decay,
            "max_grad_norm": config.max_grad_norm,
            "epsilon": config.clip_low,
            "epsilon_high": config.clip_high,
            "beta": config.kl,
            "loss_type": config.loss,
            "temperature": config.temperature,
            "top_p": config.top_p,
            "top_k": config.top_k,
            "max_completion_length": config.max_episode_tokens,
            "logging_steps": config.log_every,
            "logging_nan_inf_filter": False,
            "save_strategy": "steps",
            "save_steps": config.save_every or config.steps,
            "save_total_limit": config.keep_checkpoints,
            "report_to": config.report_to,
            "disable_tqdm": True,
            "ignore_data_skip": True,
            "dataloader_pin_memory": False,
            **precision_options(config),
        }
        return GRPOConfig(**{**options, **config.trl_options})


def batch_shape(config: TrainConfig, processes: int) -> tuple[int, int]:
    """Return the rows of one forward pass on one process, and the forward passes in one optimizer step.

    Raises:
        ConfigurationError: ``problems_per_step`` is not a multiple of the number of processes.
    """
    if config.problems_per_step % processes:
        raise ConfigurationError(
            f"problems_per_step={config.problems_per_step} groups cannot be shared by {processes} processes without "
            f"splitting one; use a multiple of {processes}."
        )
    rows = config.problems_per_step // processes * config.group_size
    each = max(size for size in range(1, min(config.rows_per_device, rows) + 1) if rows % size == 0)
    return each, rows // each


def _seed(*words: int) -> int:
    return int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0])
