"""Options of the cold start (supervised fine-tuning before reinforcement learning).

``api.sft`` runs a cold start with ``backends/trl/sft.py``, which imports torch and TRL.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from rstar2_env.core.options.declare import check_options, option
from rstar2_env.models.chat_template import check_chat_template

from .config import DTYPES, LR_SCHEDULERS, SHARDINGS


@dataclass(slots=True)
class SftOptions:
    """Options of a cold start, the supervised fine-tuning on traces.

    Attributes:
        model: Folder, GGUF file or hub name of a causal language model, or a LoRA adapter; see docs/lora.md.
        revision: As in ``ModelOptions``.
        output_dir: Folder for checkpoints and the final model.
        steps: Optimizer steps; ``None`` derives them from ``epochs``.
        epochs: Passes over the traces.
        batch_size: Traces in one optimizer step on one process.
        rows_per_device: Maximum number of traces in one forward pass; the traces of a batch are sorted by length and
            divided into passes: with 8, a batch of 12 is a pass of 8 and one of 4. On a CPU, a pass is
            divided further if it would keep more than 0.375 GiB of activations.
        learning_rate: Peak learning rate of AdamW; ``None`` chooses it by the model's size
            (docs/models.md, ``rstar2_env/models/suggested_learning_rates.py``).
        warmup_ratio: Share of the steps in which the learning rate warms up; the first step has a rate above 0.
            ``None`` chooses it by the model's size if ``learning_rate`` is ``None`` too; otherwise it is 0.03.
        lr_scheduler: Learning rate schedule, one of transformers' names.
        weight_decay: Weight decay of AdamW.
        max_length: Longest trace to train on, in tokens; longer traces are left out.
        seed: Seed of the order of the traces.
        chat_template: As in ``ModelOptions``.
        dtype: As in ``ModelOptions``.
        attn_implementation: As in ``ModelOptions``.
        trust_remote_code: As in ``ModelOptions``.
        lora_rank: As in ``ModelOptions``.
        lora_alpha: As in ``ModelOptions``.
        lora_targets: As in ``ModelOptions``.
        lora_dropout: Dropout before the adapters during the cold start; reinforcement learning uses none.
        gradient_checkpointing: As in ``ModelOptions``.
        sharding: State that is divided among processes, as in ``RunOptions``; if ``None``, the configuration of
            ``accelerate launch`` decides.
        threads: CPU threads of torch; ``None`` measures how many are fastest, unless ``OMP_NUM_THREADS`` is set.
        save_every: Steps between checkpoints; ``None`` saves about ten times per run; 0 saves only the final model.
        resume: Continue from the newest checkpoint in ``output_dir``; refused if the earlier cold start had other
            options.
        overwrite: Replace an earlier cold start in ``output_dir``; refused if the folder holds a file that no cold
            start wrote.
        report_to: Experiment trackers, by transformers' names.
        progress: Show a progress bar, or periodic lines if stderr is not a terminal.
    """

    model: str
    revision: str | None = None
    output_dir: str | os.PathLike[str] = "runs/sft"
    steps: int | None = option(None, least=1)
    epochs: float = option(1.0, above=0)
    batch_size: int = option(64, least=1)
    rows_per_device: int = option(8, least=1)
    learning_rate: float | None = option(None, above=0)
    warmup_ratio: float | None = option(None, least=0, most=1)
    lr_scheduler: str = option("cosine", choices=LR_SCHEDULERS)
    weight_decay: float = option(0.01, least=0)
    max_length: int = option(4096, least=1)
    seed: int = option(0, least=0)
    chat_template: str | None = None
    dtype: str = option("auto", choices=DTYPES)
    attn_implementation: str | None = None
    trust_remote_code: bool = False
    lora_rank: int = option(0, least=0)
    lora_alpha: float | None = option(None, above=0)
    lora_targets: str | list[str] = "all-linear"
    lora_dropout: float = option(0.0, least=0, below=1)
    gradient_checkpointing: bool | None = None
    sharding: str | None = option(None, choices=(None, *SHARDINGS))
    threads: int | None = option(None, least=1)
    save_every: int | None = option(None, least=0)
    resume: bool = False
    overwrite: bool = False
    report_to: list[str] = field(default_factory=list)
    progress: bool = True

    def __post_init__(self) -> None:
        """Check every option.

        Raises:
            ConfigurationError: A value is out of its range; the message names the option.
        """
        check_options(self)
        check_chat_template(self.chat_template)
        self.output_dir = os.fspath(self.output_dir)
