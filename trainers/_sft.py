"""The cold start: supervised training on tool-use traces, on TRL's ``SFTTrainer``, on the policy's tokens only.

A trace is tokenized exactly as a rollout of the same conversation would be, so that reinforcement learning goes on where
this ends. Not covered: packing several traces into one row.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import PrinterCallback
from transformers.trainer_utils import get_last_checkpoint
from trl import SFTConfig, SFTTrainer

from rstar2_env.episode import Message
from rstar2_env.errors import ConfigurationError, ProblemFormatError
from rstar2_env.rollout import ChatCodec

from ._callbacks import Console, RunFiles
from ._model import codec, load_policy, lora, precision_options
from .config import TrainConfig


@dataclass(slots=True)
class SftOptions:
    """Options of a cold start.

    Attributes:
        model: Folder or hub name of a causal language model.
        output_dir: Folder for checkpoints and the final model.
        steps: Optimizer steps; ``None`` takes them from ``epochs``.
        epochs: Passes over the traces.
        batch_size: Traces in one optimizer step, on one process.
        rows_per_device: Traces in one forward pass; more of a batch accumulate gradients.
        learning_rate: Peak of AdamW's learning rate.
        warmup_ratio: Share of the steps that warm up.
        lr_scheduler: Any of transformers' schedules.
        weight_decay: Of AdamW.
        max_length: Longest trace in tokens; a longer one is left out, and counted.
        seed: Order of the traces.
        chat_template: As in ``TrainConfig``.
        dtype: As in ``TrainConfig``.
        lora_rank: As in ``TrainConfig``.
        gradient_checkpointing: As in ``TrainConfig``.
        threads: CPU threads of torch.
        save_every: Steps between checkpoints; 0 for none but the final model.
        resume: Continue from the newest checkpoint.
        report_to: transformers' trackers.
        progress: Show a progress bar.
    """

    model: str
    output_dir: str = "runs/sft"
    steps: int | None = None
    epochs: float = 1.0
    batch_size: int = 64
    rows_per_device: int = 8
    learning_rate: float = 2e-5
    warmup_ratio: float = 0.03
    lr_scheduler: str = "cosine"
    weight_decay: float = 0.01
    max_length: int = 4096
    seed: int = 0
    chat_template: str | None = None
    dtype: str = "auto"
    lora_rank: int = 0
    gradient_checkpointing: bool | None = None
    threads: int | None = None
    save_every: int = 0
    resume: bool = False
    report_to: list[str] = field(default_factory=list)
    progress: bool = True


def run_sft(traces: Iterable[Mapping[str, Any]], options: SftOptions) -> Path:
    """Train on traces; return the folder of the final model.

    Args:
        traces: Records with ``messages``, as ``rstar2 traces`` writes them.
        options: See ``SftOptions``.

    Raises:
        ConfigurationError: No trace is short enough, or the model cannot be loaded.
        ProblemFormatError: A record is no trace.
    """
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    folder = Path(options.output_dir)
    config = TrainConfig(
        model=options.model,
        chat_template=options.chat_template,
        dtype=options.dtype,
        lora_rank=options.lora_rank,
        gradient_checkpointing=options.gradient_checkpointing,
    )
    model, tokenizer = load_policy(config)
    rows = encode_traces(traces, codec(config, tokenizer), options.max_length)
    accumulation = max(1, options.batch_size // options.rows_per_device)
    console = Console(
        "cold start", RunFiles(folder, rank=0, keep_episodes=False), visible=options.progress, shown=[("loss", "loss")]
    )
    arguments = SFTConfig(
        output_dir=options.output_dir,
        seed=options.seed,
        max_steps=-1 if options.steps is None else options.steps,
        num_train_epochs=options.epochs,
        per_device_train_batch_size=min(options.rows_per_device, options.batch_size),
        gradient_accumulation_steps=accumulation,
        learning_rate=options.learning_rate,
        warmup_steps=options.warmup_ratio,
        lr_scheduler_type=options.lr_scheduler,
        weight_decay=options.weight_decay,
        max_length=None,
        train_sampling_strategy="group_by_length",
        logging_steps=10,
        save_strategy="steps" if options.save_every else "no",
        save_steps=options.save_every or 500,
        save_total_limit=2,
        report_to=options.report_to,
        disable_tqdm=True,
        dataloader_pin_memory=False,
        **precision_options(config),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        trainer = SFTTrainer(
            model=model,
            args=arguments,
            train_dataset=Dataset.from_list(rows),
            processing_class=tokenizer,
            peft_config=lora(config),
            callbacks=[console],
        )
    trainer.remove_callback(PrinterCallback)
    checkpoint = get_last_checkpoint(options.output_dir) if options.resume and folder.exists() else None
    try:
        trainer.train(resume_from_checkpoint=checkpoint)
    finally:
        console.close()
    trainer.save_model(options.output_dir)
    if trainer.accelerator.is_main_process:
        tokenizer.save_pretrained(options.output_dir)
        (folder / "config.json.sft").write_text(json.dumps(asdict(options), indent=2))
    return folder


def encode_traces(traces: Iterable[Mapping[str, Any]], chat: ChatCodec, max_length: int) -> list[dict[str, Any]]:
    """Tokenize traces; ``assistant_masks`` is 1 on the policy's tokens. Longer ones are left out.

    Raises:
        ProblemFormatError: A record is no trace; the message says which.
        ConfigurationError: Every trace is too long, or there is none.
    """
    rows: list[dict[str, Any]] = []
    count = 0
    for count, record in enumerate(traces, start=1):
        try:
            messages = [Message(message["role"], message["content"]) for message in record["messages"]]
            ids, mask = chat.conversation(messages)
        except (KeyError, TypeError, ConfigurationError) as error:
            raise ProblemFormatError(
                f'Trace {count} is not a record with "messages", each with "role" and "content": {error}'
            ) from error
        if len(ids) <= max_length:
            rows.append({"input_ids": ids, "assistant_masks": mask})
    if not rows:
        raise ConfigurationError(
            f"None of the {count} traces has at most {max_length} tokens; raise max_length."
            if count
            else "There is no trace to learn from."
        )
    return rows


def read_traces(path: str | Path) -> list[dict[str, Any]]:
    """Read a file that ``rstar2 traces`` wrote.

    Raises:
        ConfigurationError: The file cannot be read.
        ProblemFormatError: A line is no JSON object; the message names it.
    """
    traces: list[dict[str, Any]] = []
    try:
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                if not line.strip():
                    continue
                record = json.loads(line)
                if not isinstance(record, dict):
                    raise ProblemFormatError(f"{path}, line {number}: expected a JSON object, got {line[:60]!r}.")
                traces.append(record)
    except OSError as error:
        raise ConfigurationError(f"The traces {path} cannot be read: {error.strerror}.") from error
    except json.JSONDecodeError as error:
        raise ProblemFormatError(f"{path}, line {number}: not valid JSON: {error.msg}.") from error
    return traces
