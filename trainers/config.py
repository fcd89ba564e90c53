"""``TrainConfig``: everything that a run can be told, with defaults, and how files and the command line fill it."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options import call_with_options, check_options, option
from rstar2_env.wrappers.registry import read_wrappers, recorded

LR_SCHEDULERS = (
    "linear",
    "cosine",
    "cosine_with_restarts",
    "polynomial",
    "constant",
    "constant_with_warmup",
    "inverse_sqrt",
    "reduce_lr_on_plateau",
    "cosine_with_min_lr",
    "cosine_warmup_with_min_lr",
    "warmup_stable_decay",
)
"""transformers' schedules, by name; the names alone, since transformers is not imported to check options."""
LOSSES = ("grpo", "dr_grpo", "dapo", "bnpo", "cispo", "sapo", "luspo", "vespo")
"""TRL's loss types."""
DTYPES = ("auto", "float32", "bfloat16", "float16")


@dataclass(slots=True)
class TrainConfig:
    """Options of a run.

    Attributes:
        model: Folder or hub name of a causal language model, or a loaded one.
        env: Gymnasium id of the environment, one's own code ("./mine.py:MyEnv"), or a callable that makes one.
        env_options: Options of the environment.
        wrappers: Put around the environment in training, the innermost first, each by name with its options
            ("fault_injection:rate=0.1"), as a table, or one's own; see docs/wrappers.md.
        output_dir: Folder of the run: checkpoints, episodes, metrics.
        seed: Root of every random choice.
        steps: Optimizer steps.
        problems_per_step: Groups in one step, over all processes.
        group_size: Episodes of a group that train (G).
        oversample: Episodes played for each that trains; the paper plays 2G and keeps G.
        selector: Name of the selector, or one's own ("./mine.py:MySelector"), alone or with options ("roc:mode=rank");
            ``None`` leaves it to the recipe.
        selector_options: Its options.
        advantage: Name of the advantage estimator, or one's own; ``None`` leaves it to the recipe.
        learning_rate: Of AdamW.
        warmup_steps: Steps of linear warm-up.
        lr_scheduler: Any of transformers' schedules.
        weight_decay: Of AdamW.
        max_grad_norm: Gradients are clipped to this norm; 0 does not clip.
        clip_low: Lower clipping distance of the probability ratio.
        clip_high: Upper clipping distance.
        kl: Weight of the KL term to the reference model; 0 keeps no reference model.
        loss: TRL's loss type; ``"dapo"`` is the mean over all tokens of the batch.
        updates_per_rollout: Passes over each batch of episodes.
        rows_per_device: Rows in one forward and backward pass; more rows accumulate gradients.
        engine: Generates the episodes: ``"transformers"`` is the trainer's own module, ``"vllm"`` vLLM in this process,
            ``"vllm-server"`` one or many ``vllm serve``. The last two are given the new weights before each step.
        engine_options: Options of the engine; see docs/rollout.md.
        importance_sampling: ``"auto"`` corrects per token when the engine's weights are not the trainer's own module,
            ``"token"`` always, ``"off"`` never.
        importance_cap: Largest importance ratio of a token.
        temperature: Of sampling in training.
        top_p: Of sampling in training.
        top_k: Of sampling in training.
        max_episode_tokens: Tokens of an episode after its prompt, the environment's included.
        max_turn_tokens: Tokens of one turn; ``None`` for what is left of the episode's.
        max_episode_seconds: Wall-clock seconds of an episode, without its wait for a place on an engine; ``None`` for
            no limit.
        early_stop: Cancel the rest of a group once its selector needs it no more; it favours short episodes.
        max_in_flight: Episodes that play at once in one process.
        max_failed: Share of a step's episodes that may end ``unavailable`` before the run stops.
        chat_template: ``"chatml"``, a Jinja template, or ``None`` for the tokenizer's own.
        chat_template_options: Passed to the template.
        eval_every: Steps between evaluations on held-out problems; 0 for none.
        eval_episodes: Episodes of an evaluation.
        eval_env_options: Override ``env_options`` in evaluation; the default asks for the split ``"test"``.
        eval_wrappers: Put around the environment in evaluation; those of training are not, so that held-out figures are
            of the task itself.
        eval_temperature: Of sampling in evaluation.
        save_every: Steps between checkpoints; 0 for the last alone.
        keep_checkpoints: Checkpoints kept besides the best.
        resume: Continue from the newest checkpoint of ``output_dir``.
        dtype: ``"auto"`` is bfloat16 on an accelerator that has it, float32 on a CPU; or ``"float32"``, ``"bfloat16"``
            or ``"float16"``.
        gradient_checkpointing: Trade time for memory; ``None`` is on for an accelerator alone.
        lora_rank: Rank of LoRA adapters on every linear layer; 0 trains all weights.
        threads: CPU threads of torch; ``None`` leaves them as they are.
        process_timeout_s: Seconds that one process of several waits for another before the run ends with an error; more
            than the slowest step's rollouts may differ.
        report_to: transformers' trackers: ``"tensorboard"``, ``"wandb"``, ``"trackio"``, ...
        keep_episodes: Write every episode, kept and left out, to ``output_dir/episodes``.
        progress: Show a progress bar and a line of metrics now and then.
        log_every: Steps between logged metrics.
        trl_options: Passed to ``trl.GRPOConfig`` last, over everything that the options above set.
    """

    model: Any
    env: Any = "rstar2/MathTool-v0"
    env_options: dict[str, Any] = field(default_factory=dict)
    wrappers: str | list[Any] = field(default_factory=list)
    output_dir: str | os.PathLike[str] = "runs/train"
    seed: int = option(0, least=0)
    steps: int = option(100, least=1)
    problems_per_step: int = option(8, least=1)
    group_size: int = option(8, least=2)
    oversample: int | None = option(None, least=1)
    selector: str | None = None
    selector_options: dict[str, Any] = field(default_factory=dict)
    advantage: str | None = None
    learning_rate: float = option(1e-6, above=0)
    warmup_steps: int = option(0, least=0)
    lr_scheduler: str = option("constant_with_warmup", choices=LR_SCHEDULERS)
    weight_decay: float = option(0.01, least=0)
    max_grad_norm: float = option(1.0, least=0)
    clip_low: float = option(0.2, least=0, most=1)
    clip_high: float = option(0.28, least=0)
    kl: float = option(0.0, least=0)
    loss: str = option("dapo", choices=LOSSES)
    updates_per_rollout: int = option(1, least=1)
    rows_per_device: int = option(8, least=1)
    engine: str = "transformers"
    engine_options: dict[str, Any] = field(default_factory=dict)
    importance_sampling: Literal["auto", "token", "off"] = "auto"
    importance_cap: float = option(2.0, least=1)
    temperature: float = option(1.0, above=0)
    top_p: float = option(1.0, above=0, most=1)
    top_k: int = option(0, least=0)
    max_episode_tokens: int = option(4096, least=1)
    max_turn_tokens: int | None = option(None, least=1)
    max_episode_seconds: float | None = option(None, above=0)
    early_stop: bool = False
    max_in_flight: int = option(512, least=1)
    max_failed: float = option(0.5, least=0, most=1)
    chat_template: str | None = None
    chat_template_options: dict[str, Any] = field(default_factory=dict)
    eval_every: int = option(0, least=0)
    eval_episodes: int = option(128, least=1)
    eval_env_options: dict[str, Any] = field(default_factory=lambda: {"split": "test"})
    eval_wrappers: str | list[Any] = field(default_factory=list)
    eval_temperature: float = option(1.0, least=0)
    save_every: int = option(0, least=0)
    keep_checkpoints: int = option(2, least=1)
    resume: bool = False
    dtype: str = option("auto", choices=DTYPES)
    gradient_checkpointing: bool | None = None
    lora_rank: int = option(0, least=0)
    threads: int | None = option(None, least=1)
    process_timeout_s: float = option(1800.0, least=1, unit="seconds")
    report_to: list[str] = field(default_factory=list)
    keep_episodes: bool = True
    progress: bool = True
    log_every: int = option(1, least=1)
    trl_options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse values that no run could use.

        Raises:
            ConfigurationError: A value is out of its range; the message names the option.
            UnknownNameError: There is no wrapper of one of the names.
        """
        check_options(self)
        self.output_dir = os.fspath(self.output_dir)
        read_wrappers(self.wrappers)
        read_wrappers(self.eval_wrappers)
        if self.trl_options.get("use_vllm"):
            raise ConfigurationError(
                "trl_options use_vllm: TRL's own use of vLLM does not play episodes, and its generation is a "
                'collective call, which turns of unlike number break. Use engine="vllm" or engine="vllm-server".'
            )

    def record(self) -> dict[str, Any]:
        """The options as JSON can hold them; a loaded model or a callable is named by its type."""
        plain = {name: value for name, value in asdict(self).items() if name not in ("model", "env")}
        plain |= {"wrappers": recorded(self.wrappers), "eval_wrappers": recorded(self.eval_wrappers)}
        named = {name: value if isinstance(value, str) else type(value).__name__ for name, value in self._parts()}
        return {**named, **plain}

    def _parts(self) -> list[tuple[str, Any]]:
        return [("model", self.model), ("env", self.env)]


def make_config(options: Mapping[str, Any]) -> TrainConfig:
    """Build the options of a run from a mapping.

    Raises:
        ConfigurationError: An option is unknown (the message suggests the nearest), missing or out of its range.
    """
    if options.get("model") is None:
        raise ConfigurationError("A run needs a model: a folder, a hub name or a loaded model.", option="model")
    return call_with_options("training run", TrainConfig, options)


def read_config(path: str | Path) -> dict[str, Any]:
    """Read options from a TOML file, or from the ``config.json`` of a run.

    Raises:
        ConfigurationError: The file is missing or is no TOML; the message names the file and the line.
    """
    try:
        with open(path, "rb") as file:
            if Path(path).suffix == ".json":
                return _of_run(json.load(file), path)
            return tomllib.load(file)
    except OSError as error:
        raise ConfigurationError(f"The configuration {path} cannot be read: {error.strerror}.") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"The configuration {path} is not valid TOML: {error}.") from error
    except ValueError as error:
        raise ConfigurationError(f"The configuration {path} is not valid: {error}.") from error


def _of_run(record: Any, path: str | Path) -> dict[str, Any]:
    """The options of a run's ``config.json``; the trainer's name is the command's, and the folder its own."""
    if not isinstance(record, dict):
        raise ConfigurationError(f"The configuration {path} is not one JSON object.")
    return {name: value for name, value in record.items() if name not in ("trainer", "output_dir", "resume")}
