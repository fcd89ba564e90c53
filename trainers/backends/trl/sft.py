"""The cold start: supervised fine-tuning on tool-use traces with TRL's ``SFTTrainer``, on the policy's tokens only.

A trace is tokenized exactly as a rollout of the same conversation would be, so that reinforcement learning continues
on the token sequences that the cold start taught. Not covered: packing several traces into one row.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import PrinterCallback
from transformers.trainer_utils import get_last_checkpoint
from trl import SFTConfig, SFTTrainer

from rstar2_env.core.episode import Message
from rstar2_env.core.errors import ConfigurationError, ProblemFormatError
from rstar2_env.rollout import ChatCodec

from ...cold_start import SftOptions
from ...config import TrainConfig
from .callbacks import Console, RunFiles
from .checks import check_trackers
from .model import codec, load_policy, lora, precision_options


def run_sft(traces: Iterable[Mapping[str, Any]], options: SftOptions) -> Path:
    """Fine-tune a model on traces; return the folder of the final model.

    Args:
        traces: Records with ``messages``, as ``rstar2 traces`` writes them.
        options: See ``SftOptions``.

    Raises:
        ConfigurationError: No trace is short enough, or the model cannot be loaded.
        ProblemFormatError: A record is not a trace.
    """
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    check_trackers(options.report_to)
    folder = Path(options.output_dir)
    config = TrainConfig(
        model=options.model,
        chat_template=options.chat_template,
        dtype=options.dtype,
        lora_rank=options.lora_rank,
        gradient_checkpointing=options.gradient_checkpointing,
    )
    model, tokenizer = load_policy(config)
    rows = encode_traces(traces, codec(config, tokenizer, model), options.max_length)
    accumulation = max(1, options.batch_size // options.rows_per_device)
    console = Console(
        "cold start", RunFiles(folder, rank=0, keep_episodes=False), visible=options.progress, shown=[("loss", "loss")]
    )
    with warnings.catch_warnings():
        # transformers warns about arguments that TRL itself sets.
        warnings.simplefilter("ignore", FutureWarning)
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
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            trainer.train(resume_from_checkpoint=checkpoint)
    finally:
        console.close()
    trainer.save_model(options.output_dir)
    if trainer.accelerator.is_main_process:
        tokenizer.save_pretrained(options.output_dir)
        (folder / "sft.json").write_text(json.dumps(asdict(options), indent=2))
    return folder


def encode_traces(traces: Iterable[Mapping[str, Any]], chat: ChatCodec, max_length: int) -> list[dict[str, Any]]:
    """Tokenize traces and leave out those that are too long.

    Args:
        traces: Records with ``messages``, as ``rstar2 traces`` writes them.
        chat: The codec that a rollout of the model would use.
        max_length: Longest trace to keep, in tokens.

    Returns:
        One row per trace: ``input_ids`` and ``assistant_masks`` of the same length; the mask is 1 on the policy's
        tokens.

    Raises:
        ProblemFormatError: A record is not a trace; the message says which.
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
