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
    traces: Annotated[
        Path, typer.Option(help="Traces to train on: a file that `rstar2 traces` wrote.", exists=True, dir_okay=False)
    ],
    model: Annotated[
        str | None,
        typer.Option(
            help="Model to train: a folder, a GGUF file, or the name of a causal language model on the Hugging Face "
            "hub."
        ),
    ] = None,
    output_dir: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder to write the trained model to [default: runs/sft].")
    ] = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Number of optimizer steps [default: computed from --epochs].")
    ] = None,
    epochs: Annotated[float | None, typer.Option(help="Number of passes over all traces [default: 1].")] = None,
    batch_size: Annotated[
        int | None, typer.Option(min=1, help="Number of traces in each optimizer step [default: 64].")
    ] = None,
    rows_per_device: Annotated[
        int | None,
        typer.Option(
            min=1, help="Number of traces in each forward pass; a larger number needs more memory [default: 8]."
        ),
    ] = None,
    learning_rate: Annotated[
        float | None,
        typer.Option(
            "--learning-rate",
            "--lr",
            help="Highest learning rate of the schedule [default: chosen by the size of the model].",
        ),
    ] = None,
    max_length: Annotated[
        int | None,
        typer.Option(min=2, help="Maximum number of tokens per trace; longer traces are skipped [default: 4096]."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed of the random order of the traces [default: 0].")
    ] = None,
    chat_template: ChatTemplate = None,
    lora_rank: LoraRank = None,
    sharding: Annotated[
        str | None,
        typer.Option(
            metavar="METHOD",
            help="How the processes divide the weights and the optimizer's state among them: none, fsdp2, "
            "zero2 or zero3 [default: as accelerate is configured, or none].",
        ),
    ] = None,
    save_every: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Number of steps between checkpoints; 0 saves only the final model [default: a tenth of all steps].",
        ),
    ] = None,
    report_to: ReportTo = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="File of options for this command (TOML, YAML); options on the command line override the file.",
            dir_okay=False,
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Set any other option of the training (warmup_ratio=0.1, dtype=float32). Repeat the option "
            "to set several.",
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the interrupted training in --out from its newest checkpoint.")
    ] = False,
    overwrite: Overwrite = False,
) -> None:
    """Train a model on examples of tool use (traces), as a start for reinforcement learning.

    The model learns only the turns (the text of the model or agent that played), not the prompts or the results of
    tools.
    """
    from rstar2_env.cli._command import flag
    from rstar2_env.core.files.config_file import naming_files, read_mapping
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
    of_file = read_mapping(config) if config else {}
    options = {**of_file, **settings, **given_flags}
    if overwrite and output_dir is not None:
        refuse_inputs(output_dir, [traces, config], option="output_dir")
    with naming_files([of_file]):
        folder = trainers.sft(trainers.read_traces(traces), **options)
    say(f"Model written to {folder}.")
