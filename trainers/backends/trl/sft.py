"""The cold start: supervised fine-tuning on tool-use traces with TRL's ``SFTTrainer``, on the policy's tokens only.

A trace is tokenized exactly like a rollout of the same conversation, so that reinforcement learning continues on the
token sequences of the cold start. Not covered: packing several traces into one row.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from datasets import Dataset
from transformers import PrinterCallback
from trl import SFTConfig

from rstar2_env.core.command.running_command import named_in
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.files.full_disk import naming_full_disk
from rstar2_env.core.files.outputs import begin_folder, files_in, list_files
from rstar2_env.core.progress import ReportProgress, progress, say
from rstar2_env.core.run_folder import RunWriter
from rstar2_env.core.telemetry import recording
from rstar2_env.rollout import ChatCodec
from rstar2_env.traces.reading import messages_of, no_traces, not_a_trace

from ...options.cold_start import SftOptions
from ...options.config import ModelOptions
from ...options.record import shared_fields
from ...plan.training_memory import CPU_ROWS_BYTES
from ...record.checkpoints import step_of
from ...record.model_card import write_cards
from ...record.resume import SFT_CPU, SFT_FILE
from .arguments import quiet
from .cpu_speed import chosen_together, most_tokens, recorded_precision, watches, width_multiple
from .model import codec, load_policy, precision_options, processes, suggested_for
from .ranks import AccelerateRanks
from .run.callbacks import Console, RunEvents
from .run.checks import check_trackers
from .run.interrupt import Stopping
from .run.step_spans import StepSpans
from .sft_trainer import SftTrainer
from .sharding.choice import chosen_sharding
from .sharding.zero import zero_arguments

_WARMUP_RATIO = 0.03
"""Warm-up ratio if the user sets the learning rate but no warm-up."""
_LOGGED = 100
"""Minimum number of logged lines of metrics per run; a run with fewer steps logs one line per step."""
_SHOWN = (
    ("loss", "loss"),
    ("speed/train_tokens_per_second", "tokens/s"),
    ("memory/peak_gib", "memory GiB"),
)


def run_sft(traces: Iterable[Mapping[str, Any]], options: SftOptions, checkpoint: Path | None) -> Path:
    """Fine-tune a model on traces; return the folder of the final model.

    Args:
        traces: Records with ``messages``, as ``rstar2 traces`` writes them.
        options: See ``SftOptions``.
        checkpoint: The checkpoint to resume from; ``None`` for a new run.

    Raises:
        ConfigurationError: No trace is short enough, the model cannot be loaded, or the sharding contradicts
            accelerate's configuration or the checkpoint.
        ProblemFormatError: A record is not a trace.
    """
    check_trackers(options.report_to)
    sharding = chosen_sharding(options.sharding, "sharding")
    folder, state = Path(options.output_dir), processes()
    ranks = AccelerateRanks(state)
    policy = ModelOptions(path=options.model, **shared_fields(ModelOptions, options))
    earlier = None if checkpoint is None else recorded_precision(folder / SFT_FILE, SFT_CPU, "precision")
    choice = chosen_together(policy, options.threads, ranks, earlier=earlier)
    state.wait_for_everyone()  # until every process has read the folder
    if state.is_main_process:
        begin_folder(folder, "sft", resume=checkpoint is not None)
        list_files(folder, folders={"runs": None})  # TensorBoard's
    with progress("cold start", show=options.progress and state.is_main_process):
        with progress("loading the model"):
            waits = sharding == "fsdp2" and not state.is_main_process
            model, tokenizer = load_policy(policy, folder, seed=options.seed, dropout=True, waits=waits)
        with progress("tokenizing") as report:
            rows = encode_traces(_counted(traces, report), codec(policy, tokenizer, model), options.max_length)
    suggested = suggested_for(model, policy)
    rate, warmup = options.learning_rate or suggested.sft_learning_rate, options.warmup_ratio
    if warmup is None:
        warmup = _WARMUP_RATIO if options.learning_rate else suggested.warmup_ratio
    steps = options.steps or math.ceil(options.epochs * -(-len(rows) // (options.batch_size * state.num_processes)))
    files = RunWriter(folder, kind="sft", rank=state.process_index, episodes=False)
    console = Console("cold start", files, visible=options.progress, shown=_SHOWN)
    stopping, steps_seen = Stopping(folder, ranks), StepSpans()
    with quiet():
        arguments = SFTConfig(
            output_dir=options.output_dir,
            seed=options.seed,
            max_steps=-1 if options.steps is None else options.steps,
            num_train_epochs=options.epochs,
            per_device_train_batch_size=options.batch_size,
            learning_rate=rate,
            warmup_steps=warmup,
            lr_scheduler_type=options.lr_scheduler,
            weight_decay=options.weight_decay,
            max_length=None,
            logging_steps=max(1, steps // _LOGGED),
            save_strategy="no" if options.save_every == 0 else "steps",
            # A fraction refers to all steps, whose number is known once the traces are counted.
            save_steps=options.save_every or 0.1,
            report_to=options.report_to,
            disable_tqdm=True,
            dataloader_pin_memory=False,
            pad_to_multiple_of=width_multiple(policy),
            **{**precision_options(policy), **zero_arguments(sharding, state.num_processes)},
        )
        trainer = SftTrainer(
            model=model,
            args=arguments,
            train_dataset=Dataset.from_list(rows),
            processing_class=tokenizer,
            callbacks=[console, RunEvents(files), stopping, steps_seen, *watches(choice, visible=options.progress)],
            max_pass_rows=options.rows_per_device,
            max_pass_tokens=most_tokens(model, policy, CPU_ROWS_BYTES),
            sharding=sharding,
        )
    trainer.remove_callback(PrinterCallback)
    resumed = None if checkpoint is None else step_of(checkpoint)
    # config.json is the model's: the folder is both the run's and the model's.
    record = asdict(options) | ({} if choice is None else {SFT_CPU: choice.record()})
    files.begin(record, resumed=resumed, config_file=SFT_FILE, traces=len(rows), learning_rate=rate)
    if choice is not None and choice.seconds and options.progress and state.is_main_process:
        say(choice.line)
    if options.learning_rate is None and options.progress and state.is_main_process:
        option = named_in("sft", "--lr", "learning_rate")
        say(
            f"Learning rate {rate:g}, chosen by the size of the model, with the warm-up ratio {warmup:g}; set others "
            f"with {option} and warmup_ratio."
        )
    with recording(), closing(steps_seen), stopping.listening():
        try:
            with quiet():
                trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
        finally:
            console.close()
        if stopping.early(trainer):
            files.event("interrupted", trainer.state.global_step)
            stopping.end_early(trainer)
        _save(trainer, tokenizer, folder)
        if trainer.accelerator.is_main_process:
            files.event("finished", trainer.state.global_step)
            write_cards(folder)
        stopping.end()
    return folder


def _save(trainer: SftTrainer, tokenizer: Any, folder: Path) -> None:
    """Save the model: write all files, then move them to the run's folder; every process must call it."""
    partial, first = folder / "model.partial", trainer.accelerator.is_main_process
    if first:
        list_files(folder, folders={partial.name: None})
        shutil.rmtree(partial, ignore_errors=True)  # of a run that was killed
    trainer.accelerator.wait_for_everyone()
    with naming_full_disk(partial):
        trainer.save_model(str(partial))
        if first:
            tokenizer.save_pretrained(str(partial))
    if first:
        list_files(folder, *files_in(partial))
        for name in files_in(partial):
            (folder / name).parent.mkdir(exist_ok=True)
            (partial / name).replace(folder / name)
        shutil.rmtree(partial)
    trainer.accelerator.wait_for_everyone()


def _counted(traces: Iterable[Mapping[str, Any]], report: ReportProgress) -> Iterator[Mapping[str, Any]]:
    for number, trace in enumerate(traces, start=1):
        yield trace
        report(number, None)


def encode_traces(traces: Iterable[Mapping[str, Any]], chat: ChatCodec, max_length: int) -> list[dict[str, Any]]:
    """Tokenize traces, and drop traces that are too long.

    Args:
        traces: Records with ``messages``, as ``rstar2 traces`` writes them. A message of the policy with ``"train":
            false`` is only context; a trace without other messages of the policy is dropped.
        chat: The codec that a rollout of the model would use.
        max_length: Maximum length of a trace, in tokens.

    Returns:
        One row per trace: ``input_ids`` and ``assistant_masks`` of the same length; the mask is 1 on the policy's
        tokens.

    Raises:
        ProblemFormatError: A record is not a trace; the message gives its number.
        ConfigurationError: There is no trace, or all of them are too long.
    """
    rows: list[dict[str, Any]] = []
    count = 0
    for count, record in enumerate(traces, start=1):
        messages = messages_of(record, f"Trace {count}")
        try:
            turns = [message.get("train", True) for message in record["messages"] if message["role"] == "assistant"]
            ids, mask = chat.conversation(messages, turns)
        except (KeyError, TypeError, ConfigurationError) as error:
            raise not_a_trace(f"Trace {count}", str(error)) from error
        if len(ids) <= max_length and any(mask):
            rows.append({"input_ids": ids, "assistant_masks": mask})
    if not count:
        raise no_traces()
    if not rows:
        raise ConfigurationError(
            f"None of the {count} traces can be trained on: a trace must contain a turn of the policy and have at most "
            f"{max_length} tokens. Raise max_length, or make other traces."
        )
    return rows
