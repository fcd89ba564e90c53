"""``rstar2 sft``: cold-start a model on tool-use traces."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rstar2_env.cli._options import ChatTemplate, LoraRank, Overwrite, ReportTo, as_typed, refuse_disagreement
from rstar2_env.cli._printing import say
from rstar2_env.cli._trainers import import_trainers


def sft_command(
    ctx: typer.Context,
    traces: Annotated[Path, typer.Option(help="File written by `rstar2 traces`.", exists=True, dir_okay=False)],
    model: Annotated[str | None, typer.Option(help="Folder, GGUF file or hub name of a causal language model.")] = None,
    output_dir: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder to write the trained model to [default: runs/sft].")
    ] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Optimizer steps [default: from --epochs].")] = None,
    epochs: Annotated[float | None, typer.Option(help="Passes over the traces [default: 1].")] = None,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Traces per optimizer step [default: 64].")] = None,
    rows_per_device: Annotated[int | None, typer.Option(min=1, help="Traces per forward pass [default: 8].")] = None,
    learning_rate: Annotated[
        float | None,
        typer.Option("--learning-rate", "--lr", help="Peak learning rate [default: by the model's size]."),
    ] = None,
    max_length: Annotated[
        int | None, typer.Option(min=2, help="Maximum tokens per trace; longer traces are skipped [default: 4096].")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed for the order of the traces [default: 0].")] = None,
    chat_template: ChatTemplate = None,
    lora_rank: LoraRank = None,
    sharding: Annotated[
        str | None,
        typer.Option(
            metavar="METHOD",
            help="Division of the weights and the optimizer's state among the processes: none, fsdp2, zero2 or zero3 "
            "[default: accelerate's configuration, or none].",
        ),
    ] = None,
    save_every: Annotated[
        int | None,
        typer.Option(min=0, help="Steps between checkpoints; 0: only the final model [default: a tenth of the run]."),
    ] = None,
    report_to: ReportTo = None,
    config: Annotated[
        Path | None,
        typer.Option(help="File of cold-start options (TOML, YAML); other arguments override it.", dir_okay=False),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Any other cold-start option (warmup_ratio=0.1, dtype=float32); repeatable.",
        ),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the newest checkpoint.")] = False,
    overwrite: Overwrite = False,
) -> None:
    """Cold-start a model on tool-use traces; only the policy's tokens contribute to the loss."""
    from rstar2_env.cli._command import flag
    from rstar2_env.core.files.config_file import read_mapping
    from rstar2_env.core.files.outputs import refuse_inputs
    from rstar2_env.core.options.declare import parse_options, typed_options

    trainers: Any = import_trainers()
    given = {
        "model": model,
        "output_dir": str(output_dir) if output_dir else None,
        "steps": steps,
        "epochs": epochs,
        "batch_size": batch_size,
        "rows_per_device": rows_per_device,
        "learning_rate": learning_rate,
        "max_length": max_length,
        "seed": seed,
        "chat_template": chat_template,
        "lora_rank": lora_rank,
        "sharding": sharding,
        "save_every": save_every,
        "report_to": report_to,
        "resume": resume or None,
        "overwrite": overwrite or None,
    }
    flags = {name: value for name, value in given.items() if value is not None}
    settings = parse_options(set_ or (), flag="--set ")
    of_settings = {name: (f"{name}={value}", value) for name, value in settings.items()}

    def typed(name: str, value: object) -> object:
        return typed_options("cold start", trainers.SftOptions, {name: value})[name]

    refuse_disagreement(ctx, {name: (name, value) for name, value in flags.items()}, of_settings, typed)
    as_given = {name: as_typed(value, flag(ctx, name)) for name, value in flags.items()}
    given_flags = typed_options("cold start", trainers.SftOptions, as_given)
    options = {**(read_mapping(config) if config else {}), **settings, **given_flags}
    if overwrite and output_dir is not None:
        refuse_inputs(output_dir, [traces, config], option="output_dir")
    folder = trainers.sft(trainers.read_traces(traces), **options)
    say(f"Model written to {folder}.")
