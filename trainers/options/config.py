"""``TrainConfig``: every option of a training run with its default, in six groups.

Covered: the meaning and the valid values of each option. Not covered: the short forms of their names (``names``), the
merging of recipe, file and command line (``layers``), and reading files (``files``).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import check_options, option
from rstar2_env.models.chat_template import check_chat_template
from rstar2_env.rollout.engines.registry import ENGINES

from .evaluation import EvalOptions, check_wrappers
from .record import plain

LR_SCHEDULERS = (
    "linear",
    "cosine",
    "cosine_with_restarts",
    "polynomial",
    "constant",
    "constant_with_warmup",
    "inverse_sqrt",
    "cosine_with_min_lr",
    "cosine_warmup_with_min_lr",
    "warmup_stable_decay",
)
"""Names of transformers' learning rate schedules that depend only on the step. The names are repeated here because
checking options must not import transformers."""
SHARDINGS = ("none", "fsdp2", "zero2", "zero3")
DEFAULT_ENV = "rstar2/MathTool-v0"
DTYPES = ("auto", "float32", "bfloat16", "float16")
HANDOVERS = ("drain", "carry")
TAILS = ("wait", "drop", "carry")
"""Values of ``rollout.tail``, which says how the slowest groups of a step are treated."""
LISTS = ("reward", "loss", "hook")
"""Slots of a trainer that hold a list of parts."""


@dataclass(slots=True)
class RunOptions:
    """The run itself: its length, its folder and its output.

    Attributes:
        output_dir: Folder of the run: checkpoints, episodes, metrics.
        seed: Seed from which every random choice is derived.
        steps: Optimizer steps.
        save_every: Steps between checkpoints; ``None`` saves about ten times per run; 0 saves only at the end.
        keep_checkpoints: Number of recent checkpoints to keep, in addition to the best weights.
        resume: Continue from the newest checkpoint of ``output_dir``.
        overwrite: Replace an earlier run in ``output_dir``; refused if the folder holds a file that no run wrote.
        threads: CPU threads of torch; ``None`` measures how many are fastest, unless ``OMP_NUM_THREADS`` is set.
        process_timeout_s: In a run of several processes, seconds that a process waits for another before the run ends
            with an error. Set it above the largest difference between the processes' rollout times in one step.
        sharding: State that is divided among processes: ``"none"`` divides nothing; ``"fsdp2"`` weights, gradients and
            the optimizer's state (torch's ``fully_shard``); ``"zero2"`` gradients and the optimizer's state,
            ``"zero3"`` weights as well (DeepSpeed). ``None`` uses accelerate's configuration, or else ``"none"``.
        export_dtype: Precision of the exports ``best`` and ``final``; checkpoints stay in float32. ``"auto"`` is
            bfloat16 if the run computes in bfloat16 and trains all weights, and otherwise float32. If a later run
            trains the export further, use ``"float32"``, the default of a pipeline's stage.
        report_to: Experiment trackers, by transformers' names: ``"tensorboard"``, ``"wandb"``, ``"trackio"``, ...
        log_every: Steps between logged metrics.
        keep_episodes: Write every episode, selected or not, to ``output_dir/episodes``.
        keep_tokens: Write token ids, log-probabilities, mask and advantages with the episodes.
        progress: Show a progress bar, or periodic lines of metrics if stderr is not a terminal.
    """

    output_dir: str | os.PathLike[str] = "runs/train"
    seed: int = option(0, least=0)
    steps: int = option(100, least=1)
    save_every: int | None = option(None, least=0)
    keep_checkpoints: int = option(2, least=1)
    resume: bool = False
    overwrite: bool = False
    threads: int | None = option(None, least=1)
    process_timeout_s: float = option(1800.0, above=0, unit="seconds")
    sharding: str | None = option(None, choices=(None, *SHARDINGS))
    export_dtype: str = option("auto", choices=DTYPES)
    report_to: list[str] = field(default_factory=list)
    log_every: int = option(1, least=1)
    keep_episodes: bool = True
    keep_tokens: bool = False
    progress: bool = True

    def __post_init__(self) -> None:
        """Check every option.

        Raises:
            ConfigurationError: A value is out of its range; the message names the option.
        """
        check_options(self, "run.")
        self.output_dir = os.fspath(self.output_dir)

    @property
    def checkpoint_every(self) -> int:
        """Steps between checkpoints, at least 1; the run's number of steps if it saves only at the end."""
        if self.save_every is None:
            return max(1, round(self.steps / 10))
        return self.save_every or self.steps


@dataclass(slots=True)
class ModelOptions:
    """The policy: its weights, their precision and computation, and its chat template.

    Attributes:
        path: Folder, GGUF file or hub name of a causal language model; or a LoRA adapter; or a loaded model.
            ``model="PATH"`` is short for it.
        revision: Branch, tag or commit of a model on the hub.
        dtype: Precision of computation; ``"auto"`` is bfloat16 on an accelerator that supports it, and on a CPU if
            the CPU has native bfloat16 instructions and they are faster in a measurement at the start; else float32.
        attn_implementation: Attention implementation of transformers: ``"sdpa"``, ``"flash_attention_2"``,
            ``"eager"``, ...; ``None`` lets transformers choose.
        trust_remote_code: Run code from the model's repository on the hub.
        gradient_checkpointing: Recompute activations to save memory; ``None`` enables it only on an accelerator.
        chat_template: ``"chatml"``, a Jinja template, or ``None`` for the tokenizer's own.
        chat_template_options: Variables passed to the template.
        teacher: Frozen model whose log-probabilities a term of the loss needs (``kdrl``, ``opd``): folder or hub name
            of a model with the same tokenizer, or ``"self"`` for the initial model of the run.
        teacher_prompt: Text that only the teacher reads after the user's message, such as ``"The answer is
            {answer}."``; ``{answer}`` is the gold answer, and other names are fields of ``Problem.meta``, such as
            ``{solution}``.
        lora_rank: Rank of LoRA adapters; 0 trains all weights. If the model has an adapter of this rank, that adapter
            is trained; an adapter of another rank is merged first.
        lora_alpha: The output of an adapter is multiplied by ``lora_alpha / lora_rank``; ``None`` is twice the rank, or
            the value of the model's adapter.
        lora_targets: Modules that get an adapter: ``"all-linear"``, a regular expression, or a list of names.
        lora_dropout: Dropout before the adapters, for a cold start only. In reinforcement learning it must be 0,
            since dropout would add noise to the probability ratios.
    """

    path: Any
    revision: str | None = None
    dtype: str = option("auto", choices=DTYPES)
    attn_implementation: str | None = None
    trust_remote_code: bool = False
    gradient_checkpointing: bool | None = None
    chat_template: str | None = None
    chat_template_options: dict[str, Any] = field(default_factory=dict)
    teacher: str | None = None
    teacher_prompt: str | None = None
    lora_rank: int = option(0, least=0)
    lora_alpha: float | None = option(None, above=0)
    lora_targets: str | list[str] = "all-linear"
    lora_dropout: float = option(0.0, least=0, below=1)

    def __post_init__(self) -> None:
        """Check every option.

        Raises:
            ConfigurationError: A value is out of its range; the message names the option.
        """
        check_options(self, "model.")
        check_chat_template(self.chat_template)
        if isinstance(self.path, os.PathLike):
            self.path = os.fspath(self.path)


@dataclass(slots=True)
class RolloutOptions:
    """The episodes: environment, engine, number of episodes, and budgets.

    Attributes:
        env: Gymnasium id of the environment, a class in your own code (``./mine.py:MyEnv``), or a callable that
            returns an environment.
        env_options: Options of the environment; ``env.NAME`` sets one of them.
        wrappers: Wrappers of the training environment, innermost first. Each is a name with options
            (``fault_injection:rate=0.1``), a table, or your own code; see docs/wrappers.md.
        engine: Engine that generates the episodes: ``"transformers"`` uses the model being trained, ``"vllm"`` runs
            vLLM in this process, ``"vllm-server"`` uses one or more ``vllm serve`` processes. The last two receive the
            new weights before each step.
        engine_options: Options of the engine, ``engine.NAME`` for short; see docs/engines.md.
        problems_per_step: Groups in one step, over all processes.
        group_size: Episodes per group that are trained on (G).
        oversample: Episodes played per episode trained on; the GRPO-RoC paper plays 2G and keeps G.
        refill: Maximum number of rounds in which new groups replace rejected ones.
        replace: If at least this share of ``problems_per_step`` groups was accepted, copies of randomly drawn accepted
            groups replace the missing groups, instead of further refills (POLARIS; 0.3 in SkyRL). ``None`` trains on
            fewer groups.
        temperature: Sampling temperature in training.
        top_p: Nucleus sampling threshold in training; 1 disables it.
        top_k: Sample from the k most likely tokens in training; 0 disables it.
        max_episode_tokens: Token budget of an episode after its prompt, including the environment's tokens.
        max_turn_tokens: Token budget of one turn; ``None`` allows the rest of the episode's budget.
        max_episode_seconds: Wall-clock limit of an episode in seconds, not counting its time in the engine's queue;
            ``None`` for no limit. A run with a limit is not reproducible.
        early_stop: Cancel the remaining episodes of a group once its selector has enough episodes; this favours short
            episodes, see docs/long-tail.md#early-stop.
        tail: Handling of the groups that end last. ``"wait"`` waits for them. ``"drop"`` and ``"carry"`` start
            ``spare_groups`` additional groups. When ``problems_per_step`` groups have ended, ``"drop"`` drops the
            remaining groups, and ``"carry"`` carries them over to the next step, which continues them. ``"drop"``
            favours short episodes, and ``"carry"`` trains on turns of older weights; see
            docs/long-tail.md#the-long-tail.
        spare_groups: Number of additional groups, as a share of ``problems_per_step``, if ``tail`` is not
            ``"wait"``.
        max_in_flight: Largest number of episodes played concurrently in one process.
        adaptive_in_flight: Play as many episodes as fit in the caches of the vLLM engines, over all processes; see
            docs/long-tail.md.
        one_queue: Let any process of a run play episodes for which another process has no room; see docs/long-tail.md.
        judge: Model for parts that need a judge: ``model:url=http://localhost:8000/v1,model=NAME``, or your own code;
            see docs/trainers.md#judges.
        max_failed: Largest share of a step's episodes that may end as ``unavailable``; a larger share stops the run.
        max_staleness: Maximum number of rollouts that are trained on between the generation of a turn and the first
            update on that turn. 0 alternates between playing and training; with 1 or more, an engine with its own
            weights plays while the trainer trains.
        handover: Handling of prefetched episodes at a weight sync: ``"drain"`` waits until they have ended, and syncs
            weights every ``max_staleness`` rollouts; ``"carry"`` syncs weights before each rollout is trained on, and
            the running episodes continue with the new weights.
        handover_tolerance: Largest mean distance, in nats, between the log-probabilities that the engine and the
            trainer give to a known prompt's continuation after a weight sync; a larger distance stops the run. ``None``
            is 0.002 in float32, 0.03 in float16 and 0.1 in bfloat16. Raise it if the engine computes in a lower
            precision than the trainer.
    """

    env: Any = DEFAULT_ENV
    env_options: dict[str, Any] = field(default_factory=dict)
    wrappers: str | list[Any] = field(default_factory=list)
    engine: str = "transformers"
    engine_options: dict[str, Any] = field(default_factory=dict)
    problems_per_step: int = option(8, least=1)
    group_size: int = option(8, least=1)
    oversample: int = option(1, least=1)
    refill: int = option(0, least=0)
    replace: float | None = option(None, above=0, most=1)
    temperature: float = option(1.0, above=0)
    top_p: float = option(1.0, above=0, most=1)
    top_k: int = option(0, least=0)
    max_episode_tokens: int = option(4096, least=1)
    max_turn_tokens: int | None = option(None, least=1)
    max_episode_seconds: float | None = option(None, above=0)
    early_stop: bool = False
    tail: str = option("wait", choices=TAILS)
    spare_groups: float = option(0.25, least=0, most=4)
    max_in_flight: int = option(512, least=1)
    adaptive_in_flight: bool = False
    one_queue: bool = True
    judge: Any = None
    max_failed: float = option(0.5, least=0, most=1)
    max_staleness: int = option(0, least=0)
    handover: str = option("drain", choices=HANDOVERS)
    handover_tolerance: float | None = option(None, above=0)

    def __post_init__(self) -> None:
        """Check every option.

        Raises:
            ConfigurationError: A value is out of its range; the message names the option.
            UnknownNameError: The name of the engine or of a wrapper is unknown.
        """
        check_options(self, "rollout.")
        ENGINES.get(self.engine)
        check_wrappers(self.wrappers)


@dataclass(slots=True)
class OptimOptions:
    """The optimizer: learning rate, updates per rollout, and the size of a pass.

    Attributes:
        learning_rate: Peak learning rate of AdamW; ``None`` chooses it by the model's size
            (docs/models.md, ``rstar2_env/models/suggested_learning_rates.py``).
        warmup_steps: Steps of linear warm-up: step i of n has i/n of the learning rate. ``None`` chooses it by the
            model's size if ``learning_rate`` and ``begin_from`` are not set, at most a tenth of the run; otherwise it
            is 0.
        lr_scheduler: Learning rate schedule, one of transformers' names.
        begin_from: Folder of an earlier run, or of one of its checkpoints. The optimizer begins with the state of that
            run's optimizer, but with this run's learning rate, schedule and warm-up.
        weight_decay: Weight decay of AdamW.
        max_grad_norm: Largest gradient norm; larger gradients are clipped to it. 0 disables clipping.
        updates_per_rollout: Optimization passes over each batch of episodes.
        minibatches: Number of parts into which the groups of a rollout, over all processes, are divided. Each part is
            one optimizer step; a rollout with fewer groups takes one step for each group.
        tokens_per_device: Tokens of one forward and backward pass on each device, padding included; a longer row gets
            its own pass. On a CPU, a pass also keeps at most 0.5 GiB of activations.
        share_prefixes: If rows of a pass begin with the same tokens, such as the prompt of a group, compute these
            tokens only once, unless that costs more; see docs/training-step.md#shared-prefixes.
        offload_state: Keep the optimizer's state in host memory while vLLM plays in the training processes, so that
            vLLM's cache may be larger. The state returns to the device before the optimizer's step. ``None`` enables
            this if the engine sleeps (``engine.sleep``) and its cache would otherwise not hold the episodes in flight
            at their expected length.
        trl_options: Further arguments of ``trl.GRPOConfig``, such as ``adam_beta2`` and ``optim``. Arguments that would
            have no effect or would break the loss are refused; the message names the option to use instead.
    """

    learning_rate: float | None = option(None, above=0)
    warmup_steps: int | None = option(None, least=0)
    lr_scheduler: str = option("constant_with_warmup", choices=LR_SCHEDULERS)
    begin_from: str | os.PathLike[str] | None = None
    weight_decay: float = option(0.01, least=0)
    max_grad_norm: float = option(1.0, least=0)
    updates_per_rollout: int = option(1, least=1)
    minibatches: int = option(1, least=1)
    tokens_per_device: int = option(16384, least=1)
    share_prefixes: bool = True
    offload_state: bool | None = None
    trl_options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check every option.

        Raises:
            ConfigurationError: A value is out of its range; the message names the option.
        """
        check_options(self, "optim.")
        if self.begin_from is not None:
            self.begin_from = os.fspath(self.begin_from)


@dataclass(slots=True)
class PartOptions:
    """The parts of the trainer, one field per slot; ``rstar2 list parts`` lists them with their options.

    Write a part as a name with options (``roc:mode=rank``), a table, your own code (``./mine.py:MySelector``), or in
    Python the class or function itself; the recipe sets the defaults. ``SLOT.NAME`` sets one option of a part. The
    slots ``reward``, ``loss`` and ``hook`` are lists; for them, write ``SLOT.PART.NAME``.

    Attributes:
        rollout: Plays the groups of episodes; written only as ``parts.rollout``, since ``rollout`` is a group of
            options.
        reward: Components of an episode's reward, whose scores are added.
        selector: Chooses the episodes of a group to train on.
        advantage: Estimates how much better than expected an episode or a token is.
        loss: Terms of the loss, added to one another.
        aggregation: Averages the loss over the tokens of the optimizer's batch.
        correction: Importance weights that correct for differences between the engine's and the trainer's
            probabilities; ``"auto"`` truncates them per token if the engine has its own copy of the model or
            ``rollout.tail`` is ``"carry"``, and otherwise does nothing.
        sampler: Chooses the problems of a step.
        hook: Callbacks of the running trainer. A list replaces the default list; ``hook.NAME.OPTION`` sets an option
            of the hook ``NAME``, and adds this hook if the list lacks it.
    """

    rollout: Any = "plain"
    reward: list[Any] = field(default_factory=lambda: ["return"])
    selector: Any = "all"
    advantage: Any = "group_norm"
    loss: list[Any] = field(default_factory=lambda: ["ppo_clip"])
    aggregation: Any = "token_mean"
    correction: Any = "auto"
    sampler: Any = "uniform"
    hook: list[Any] = field(default_factory=lambda: ["diagnosis"])


@dataclass(slots=True)
class TrainConfig:
    """All options of a training run.

    ``tools/docs_site/options_table.py`` writes the descriptions into the tables of docs/options.md.

    Attributes:
        run: The run itself.
        model: The policy.
        rollout: The episodes.
        optim: The optimizer.
        parts: The parts of the trainer.
        eval: Evaluation.
    """

    model: ModelOptions
    run: RunOptions = field(default_factory=RunOptions)
    rollout: RolloutOptions = field(default_factory=RolloutOptions)
    optim: OptimOptions = field(default_factory=OptimOptions)
    parts: PartOptions = field(default_factory=PartOptions)
    eval: EvalOptions = field(default_factory=EvalOptions)

    def in_evaluation(self, name: str) -> Any:
        """Return the ``eval`` value of an option; if it is ``None``, return the ``rollout`` value."""
        value = getattr(self.eval, name)
        return getattr(self.rollout, name) if value is None else value

    @property
    def eval_env_options(self) -> dict[str, Any]:
        """All options of the evaluation environment."""
        return {**self.rollout.env_options, **self.eval.env_options}

    @property
    def updates(self) -> int:
        """Maximum number of optimizer steps on one rollout: in each pass, at most one step for each group."""
        return self.optim.updates_per_rollout * min(self.optim.minibatches, self.rollout.problems_per_step)

    @property
    def rollouts(self) -> int:
        """Number of rollouts of the run, if each has ``updates`` optimizer steps."""
        return -(-self.run.steps // self.updates)

    def record(self) -> dict[str, Any]:
        """Return the options as JSON-compatible values, from which the same run can be configured again.

        A loaded model is stored as the name of its type, and a class or function as ``code_name`` names it.
        """
        return {
            group: {one.name: plain(one.name, getattr(options, one.name)) for one in fields(options)}
            for group in GROUPS
            for options in (getattr(self, group),)
        }


GROUPS: Mapping[str, type[Any]] = {
    "run": RunOptions,
    "model": ModelOptions,
    "rollout": RolloutOptions,
    "optim": OptimOptions,
    "parts": PartOptions,
    "eval": EvalOptions,
}
"""The groups of options, each with the class that declares its options."""


def run_record(name: str, config: TrainConfig) -> dict[str, Any]:
    """Return the options of a run in the form that its folder stores.

    Args:
        name: Name of the recipe.
        config: Options of the run.
    """
    return {"trainer": name, **config.record()}


def missing_model() -> ConfigurationError:
    """Return the error for a run without a model."""
    return ConfigurationError(
        "No model is named: give a folder, or a name on the Hugging Face hub.",
        option="model",
    )
