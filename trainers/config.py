"""``TrainConfig``: every option of a training run with its default, and how to read options from a file."""

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
"""Names of transformers' learning rate schedules; listed here because checking options must not import transformers."""
LOSSES = ("grpo", "dr_grpo", "dapo", "bnpo", "cispo", "sapo", "luspo", "vespo")
"""TRL's loss types."""
DTYPES = ("auto", "float32", "bfloat16", "float16")


@dataclass(slots=True)
class TrainConfig:
    """Options of a training run.

    docs/training.md holds these descriptions as a table, which ``rstar2_env.trainers.options_table`` writes.

    Attributes:
        model: Folder or hub name of a causal language model, or a loaded model.
        env: Gymnasium id of the environment, a class in your own code (``./mine.py:MyEnv``), or a callable that
            returns an environment.
        env_options: Options of the environment.
        wrappers: Wrappers of the training environment, innermost first: each a name with options
            (``fault_injection:rate=0.1``), a table, or your own code; see docs/wrappers.md.
        output_dir: Folder of the run: checkpoints, episodes, metrics.
        seed: Seed from which every random choice is derived.
        steps: Optimizer steps.
        problems_per_step: Groups in one step, over all processes.
        group_size: Episodes of each group that are trained on (G).
        oversample: Episodes played for each one trained on; the GRPO-RoC paper plays 2G and keeps G. ``None`` uses the
            recipe's value.
        selector: Name of the selector, or your own (``./mine.py:MySelector``), optionally with options
            (``roc:mode=rank``); ``None`` uses the recipe's selector.
        selector_options: Options of the selector.
        advantage: Name of the advantage estimator, or your own (``./mine.py:my_advantage``); ``None`` uses the
            recipe's estimator.
        learning_rate: Peak learning rate of AdamW.
        warmup_steps: Steps of linear warm-up.
        lr_scheduler: Learning rate schedule, one of transformers' names.
        weight_decay: Weight decay of AdamW.
        max_grad_norm: Largest gradient norm; larger gradients are clipped to it. 0 disables clipping.
        clip_low: The probability ratio is clipped below at 1 - clip_low.
        clip_high: The probability ratio is clipped above at 1 + clip_high.
        kl: Coefficient of the KL divergence from the reference model; with 0 no reference model is loaded.
        loss: TRL's loss type; ``"dapo"`` averages over all tokens of the batch.
        updates_per_rollout: Optimization passes over each batch of episodes.
        rows_per_device: Rows in one forward and backward pass on each device; a larger batch accumulates gradients.
        engine: Engine that generates the episodes: ``"transformers"`` uses the model being trained, ``"vllm"`` runs
            vLLM in this process, ``"vllm-server"`` uses one or more ``vllm serve`` processes. The last two receive the
            new weights before each step.
        engine_options: Options of the engine; see docs/rollout.md.
        importance_sampling: Per-token correction for the difference between the engine's and the trainer's
            probabilities: ``"auto"`` applies it when the engine has a copy of the weights, ``"token"`` always,
            ``"off"`` never.
        importance_cap: Upper bound of a token's importance ratio.
        temperature: Sampling temperature in training.
        top_p: Nucleus sampling threshold in training; 1 disables it.
        top_k: Sample from the k most likely tokens in training; 0 disables it.
        max_episode_tokens: Token budget of an episode after its prompt, including the environment's tokens.
        max_turn_tokens: Token budget of one turn; ``None`` allows what is left of the episode's budget.
        max_episode_seconds: Wall-clock limit of an episode in seconds, not counting its time in the engine's queue;
            ``None`` for no limit. A run with a limit is not reproducible.
        early_stop: Cancel the remaining episodes of a group once its selector has enough; this favours short episodes,
            see docs/rollout.md#early-stop.
        max_in_flight: Largest number of episodes played concurrently in one process.
        max_failed: Largest share of a step's episodes that may end as ``unavailable``; a larger share stops the run.
        chat_template: ``"chatml"``, a Jinja template, or ``None`` for the tokenizer's own.
        chat_template_options: Variables passed to the template.
        eval_every: Steps between evaluations on held-out problems; 0 disables evaluation.
        eval_episodes: Episodes in each evaluation.
        eval_env_options: Options that override ``env_options`` in evaluation; the default selects the split ``"test"``,
            where the environment has splits.
        eval_wrappers: Wrappers of the evaluation environment. ``wrappers`` are not applied there, so that held-out
            figures measure the task itself.
        eval_temperature: Sampling temperature in evaluation.
        save_every: Steps between checkpoints; 0 saves only the last one.
        keep_checkpoints: Number of recent checkpoints to keep, in addition to the best weights.
        resume: Continue from the newest checkpoint of ``output_dir``.
        dtype: Precision of computation; ``"auto"`` is bfloat16 on an accelerator that supports it, else float32.
        gradient_checkpointing: Recompute activations to save memory; ``None`` enables it only on an accelerator.
        lora_rank: Rank of LoRA adapters on every linear layer; 0 trains all weights.
        threads: CPU threads of torch; ``None`` keeps torch's setting.
        process_timeout_s: In a run of several processes, seconds that one waits for another before the run ends with an
            error. Set it above the largest difference between the processes' rollout times in one step.
        report_to: Experiment trackers, by transformers' names: ``"tensorboard"``, ``"wandb"``, ``"trackio"``, ...
        keep_episodes: Write every episode, selected or not, to ``output_dir/episodes``.
        progress: Show a progress bar, or periodic lines of metrics where stderr is not a terminal.
        log_every: Steps between logged metrics.
        trl_options: Arguments of ``trl.GRPOConfig``; they override what the other options set.
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
        """Check every option.

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
                "trl_options use_vllm: TRL's own vLLM mode does not play multi-turn episodes, and its collective "
                'generation call fails when episodes differ in their number of turns. Use engine="vllm" or '
                'engine="vllm-server".'
            )

    def record(self) -> dict[str, Any]:
        """Return the options as JSON-compatible values; a loaded model or a callable becomes the name of its type."""
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
        ConfigurationError: The file cannot be read or is not valid; the message names the file and the line.
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
    """The options in a run's ``config.json``, without those that belong to that run: trainer, folder, resume."""
    if not isinstance(record, dict):
        raise ConfigurationError(f"The configuration {path} is not one JSON object.")
    return {name: value for name, value in record.items() if name not in ("trainer", "output_dir", "resume")}
