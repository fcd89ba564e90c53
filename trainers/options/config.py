"""``TrainConfig``: every option of a training run with its default, in six groups.

Covered: what each option is and which values it takes. Not covered: the short forms of their names (``names``), the
merging of recipe, file and command line (``layers``), and reading files (``config_files``).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import check_options, option

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
    "reduce_lr_on_plateau",
    "cosine_with_min_lr",
    "cosine_warmup_with_min_lr",
    "warmup_stable_decay",
)
"""Names of transformers' learning rate schedules; listed here because checking options must not import transformers."""
SHARDINGS = ("none", "fsdp2", "zero2", "zero3")
DEFAULT_ENV = "rstar2/MathTool-v0"
DTYPES = ("auto", "float32", "bfloat16", "float16")
HANDOVERS = ("drain", "carry")
TAILS = ("wait", "drop", "carry")
"""What a step does with the groups that end last."""
LISTS = ("reward", "loss", "hook")
"""Slots that hold several parts."""


@dataclass(slots=True)
class RunOptions:
    """The run itself: its length, its folder, what it writes.

    Attributes:
        output_dir: Folder of the run: checkpoints, episodes, metrics.
        seed: Seed from which every random choice is derived.
        steps: Optimizer steps.
        save_every: Steps between checkpoints; ``None`` saves about every tenth part of the run, 0 only its end.
        keep_checkpoints: Number of recent checkpoints to keep, in addition to the best weights.
        resume: Continue from the newest checkpoint of ``output_dir``.
        threads: CPU threads of torch; ``None`` keeps torch's setting.
        process_timeout_s: In a run of several processes, seconds that one waits for another before the run ends with an
            error. Set it above the largest difference between the processes' rollout times in one step.
        sharding: What several processes divide among them: ``"none"`` nothing, so that each has everything; ``"fsdp2"``
            weights, gradients and the optimizer's state (torch's ``fully_shard``); ``"zero2"`` gradients and the
            optimizer's state, ``"zero3"`` weights as well (DeepSpeed). ``None`` is what accelerate's configuration
            says, or ``"none"``.
        report_to: Experiment trackers, by transformers' names: ``"tensorboard"``, ``"wandb"``, ``"trackio"``, ...
        log_every: Steps between logged metrics.
        keep_episodes: Write every episode, selected or not, to ``output_dir/episodes``.
        keep_tokens: Write token ids, log-probabilities, mask and advantages with the episodes.
        progress: Show a progress bar, or periodic lines of metrics where stderr is not a terminal.
    """

    output_dir: str | os.PathLike[str] = "runs/train"
    seed: int = option(0, least=0)
    steps: int = option(100, least=1)
    save_every: int | None = option(None, least=0)
    keep_checkpoints: int = option(2, least=1)
    resume: bool = False
    threads: int | None = option(None, least=1)
    process_timeout_s: float = option(1800.0, above=0, unit="seconds")
    sharding: str | None = option(None, choices=(None, *SHARDINGS))
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
        """Steps between checkpoints, as a number: at least 1, the whole run where only its end is saved."""
        if self.save_every is None:
            return max(1, round(self.steps / 10))
        return self.save_every or self.steps


@dataclass(slots=True)
class ModelOptions:
    """The policy: its weights, how they are held and computed, and its chat template.

    Attributes:
        path: Folder or hub name of a causal language model or of a LoRA adapter, or a loaded model. ``model="PATH"`` is
            short for it.
        revision: Branch, tag or commit of a model on the hub.
        dtype: Precision of computation; ``"auto"`` is bfloat16 on an accelerator that supports it, else float32.
        attn_implementation: Attention of transformers: ``"sdpa"``, ``"flash_attention_2"``, ``"eager"``, ...; ``None``
            lets transformers choose.
        trust_remote_code: Run the code that comes with a model on the hub.
        gradient_checkpointing: Recompute activations to save memory; ``None`` enables it only on an accelerator.
        chat_template: ``"chatml"``, a Jinja template, or ``None`` for the tokenizer's own.
        chat_template_options: Variables passed to the template.
        teacher: Folder or hub name of a model with the same tokenizer, frozen, whose log-probabilities a term of the
            loss needs (``kdrl``, ``opd``); ``"self"`` is the model that the run begins with.
        teacher_prompt: What the teacher alone reads after the user's message, such as ``"The answer is {answer}."``;
            ``{answer}`` is the gold answer, and other names are fields of ``Problem.meta``, such as ``{solution}``.
        lora_rank: Rank of LoRA adapters; 0 trains all weights. A model that brings an adapter of this rank goes on
            training it; with another rank it is merged first.
        lora_alpha: Scale of the adapters, divided by their rank; ``None`` is twice the rank, or that of the adapter
            that the model brings.
        lora_targets: Modules that get an adapter: ``"all-linear"``, a regular expression, or a list of names.
        lora_dropout: Dropout before the adapters; only a cold start trains with it. Here it must be 0, since dropout
            would make the probability ratios noise.
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
        if isinstance(self.path, os.PathLike):
            self.path = os.fspath(self.path)


@dataclass(slots=True)
class RolloutOptions:
    """The episodes: environment, engine, how many are played, and their budgets.

    Attributes:
        env: Gymnasium id of the environment, a class in your own code (``./mine.py:MyEnv``), or a callable that
            returns an environment.
        env_options: Options of the environment; ``env.NAME`` is short for one.
        wrappers: Wrappers of the training environment, innermost first: each a name with options
            (``fault_injection:rate=0.1``), a table, or your own code; see docs/wrappers.md.
        engine: Engine that generates the episodes: ``"transformers"`` uses the model being trained, ``"vllm"`` runs
            vLLM in this process, ``"vllm-server"`` uses one or more ``vllm serve`` processes. The last two receive the
            new weights before each step.
        engine_options: Options of the engine, ``engine.NAME`` for short; see docs/rollout.md.
        problems_per_step: Groups in one step, over all processes.
        group_size: Episodes of each group that are trained on (G).
        oversample: Episodes played for each one trained on; the GRPO-RoC paper plays 2G and keeps G.
        refill: Rounds in which rejected groups are replaced by new ones.
        replace: Train copies of groups that were drawn at random in place of missing ones, once this share of
            ``problems_per_step`` was found (POLARIS; 0.3 in SkyRL); rounds of refill are played only until then.
            ``None`` trains on fewer groups.
        temperature: Sampling temperature in training.
        top_p: Nucleus sampling threshold in training; 1 disables it.
        top_k: Sample from the k most likely tokens in training; 0 disables it.
        max_episode_tokens: Token budget of an episode after its prompt, including the environment's tokens.
        max_turn_tokens: Token budget of one turn; ``None`` allows what is left of the episode's budget.
        max_episode_seconds: Wall-clock limit of an episode in seconds, not counting its time in the engine's queue;
            ``None`` for no limit. A run with a limit is not reproducible.
        early_stop: Cancel the remaining episodes of a group once its selector has enough; this favours short episodes,
            see docs/rollout.md#early-stop.
        tail: What becomes of the groups that end last: ``"wait"`` for them; begin ``spare_groups`` more and ``"drop"``
            those that have not ended when ``problems_per_step`` have, or ``"carry"`` them over to the next step, which
            goes on with them. The last two favour short episodes or train on turns of older weights, see
            docs/rollout.md#the-long-tail.
        spare_groups: Groups begun beyond ``problems_per_step``, as a share of it, where ``tail`` does not wait.
        max_in_flight: Largest number of episodes played concurrently in one process.
        adaptive_in_flight: Play as many as the caches of the vLLM engines have room for, over all processes together;
            see docs/rollout.md.
        one_queue: Let any process of a run play episodes that another has no room for; see docs/rollout.md.
        judge: Model that parts ask which need one: ``model:url=http://localhost:8000/v1,model=NAME``, or
            your own code; see docs/trainers.md#judges.
        max_failed: Largest share of a step's episodes that may end as ``unavailable``; a larger share stops the run.
        max_staleness: Hand-overs of weights by which those that draw a turn may be older than those that first train on
            it. 0 plays and trains by turns; from 1 on, an engine with weights of its own plays while the trainer
            trains.
        handover: What becomes of episodes that are played ahead when new weights go to the engine: ``"drain"`` lets
            them end first, and hands weights over every ``max_staleness`` rollouts; ``"carry"`` does so before every
            rollout that trains, and they go on with the new weights.
        handover_tolerance: Largest mean distance, in nats, of the log-probabilities that the engine and the trainer
            give to a known prompt's continuation after a hand-over of weights; a larger one stops the run. ``None`` is
            0.002 in float32, 0.03 in float16 and 0.1 in bfloat16. Raise it where the engine computes in a lower
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
            UnknownNameError: There is no wrapper of one of the names.
        """
        check_options(self, "rollout.")
        check_wrappers(self.wrappers)


@dataclass(slots=True)
class OptimOptions:
    """The optimizer: learning rate, updates of a rollout, and how much one pass computes.

    Attributes:
        learning_rate: Peak learning rate of AdamW.
        warmup_steps: Steps of linear warm-up.
        lr_scheduler: Learning rate schedule, one of transformers' names.
        begin_from: Folder of an earlier run, or of one of its checkpoints, with the state of whose optimizer this one
            begins; its learning rate, schedule and warm-up are its own.
        weight_decay: Weight decay of AdamW.
        max_grad_norm: Largest gradient norm; larger gradients are clipped to it. 0 disables clipping.
        updates_per_rollout: Optimization passes over each batch of episodes.
        minibatches: Parts that the groups of a rollout are divided into, one optimizer step each.
        tokens_per_device: Tokens of one forward and backward pass on each device, padding included; a longer row is a
            pass of its own.
        trl_options: Further arguments of ``trl.GRPOConfig``, such as ``adam_beta2`` and ``optim``. Those that would do
            nothing here, or break the loss, are refused with the option to use instead.
    """

    learning_rate: float = option(1e-6, above=0)
    warmup_steps: int = option(0, least=0)
    lr_scheduler: str = option("constant_with_warmup", choices=LR_SCHEDULERS)
    begin_from: str | os.PathLike[str] | None = None
    weight_decay: float = option(0.01, least=0)
    max_grad_norm: float = option(1.0, least=0)
    updates_per_rollout: int = option(1, least=1)
    minibatches: int = option(1, least=1)
    tokens_per_device: int = option(16384, least=1)
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
    """The parts of the trainer, one field a slot; ``rstar2 parts`` lists them with their options.

    Each is a name with options (``roc:mode=rank``), a table, your own code (``./mine.py:MySelector``), or in Python the
    class or function itself; the recipe gives the defaults. ``SLOT.NAME`` is short for an option of a part, and in
    ``reward``, ``loss`` and ``hook``, which are lists, ``SLOT.PART.NAME``.

    Attributes:
        rollout: Plays the groups; only as ``parts.rollout``, since ``rollout`` is the group of options.
        reward: What an episode earns: components whose scores are added.
        selector: Chooses the episodes of a group to train on.
        advantage: How much better an episode or a token did than expected.
        loss: Terms of the loss, added to one another.
        aggregation: The mean over the tokens of the optimizer's batch.
        correction: Weights for what the engine and the trainer compute differently; ``"auto"`` truncates token by token
            where the engine has its own copy of the weights, and does nothing elsewhere.
        sampler: Chooses the problems of a step.
        hook: Callbacks that act on the running trainer.
    """

    rollout: Any = "plain"
    reward: list[Any] = field(default_factory=lambda: ["return"])
    selector: Any = "all"
    advantage: Any = "group_norm"
    loss: list[Any] = field(default_factory=lambda: ["ppo_clip"])
    aggregation: Any = "token_mean"
    correction: Any = "auto"
    sampler: Any = "uniform"
    hook: list[Any] = field(default_factory=list)


@dataclass(slots=True)
class TrainConfig:
    """All options of a training run.

    docs/training.md holds the descriptions as tables, which ``tools/docs_site/options_table.py`` writes.

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
        """The value of an option of ``eval``, or training's where it has none."""
        value = getattr(self.eval, name)
        return getattr(self.rollout, name) if value is None else value

    @property
    def eval_env_options(self) -> dict[str, Any]:
        """All options of the evaluation environment."""
        return {**self.rollout.env_options, **self.eval.env_options}

    def record(self) -> dict[str, Any]:
        """Return the options as JSON-compatible values, from which the same run can be configured again.

        A loaded model becomes the name of its type, and a class or function that stands in no module its own name.
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
"""The groups of options and their records."""


def missing_model() -> ConfigurationError:
    """The error of a run that was given no model."""
    return ConfigurationError("A run needs a model: a folder, a hub name or a loaded model.", option="model")
