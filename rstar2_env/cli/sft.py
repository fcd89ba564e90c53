"""``rstar2 sft``: cold-start a model on tool-use traces."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rstar2_env.cli._options import ChatTemplate, LoraRank, ReportTo


def sft_command(
    model: Annotated[str, typer.Option(help="Folder or hub name of a causal language model.")],
    traces: Annotated[Path, typer.Option(help="File that `rstar2 traces` wrote.", exists=True, dir_okay=False)],
    output_dir: Annotated[Path, typer.Option("--out", "-o", help="Folder of the model.")] = Path("runs/sft"),
    steps: Annotated[int | None, typer.Option(min=1, help="Optimizer steps [default: from --epochs].")] = None,
    epochs: Annotated[float, typer.Option(help="Passes over the traces.")] = 1.0,
    batch_size: Annotated[int, typer.Option(min=1, help="Traces in one optimizer step.")] = 64,
    rows_per_device: Annotated[int, typer.Option(min=1, help="Traces in one forward pass.")] = 8,
    learning_rate: Annotated[float, typer.Option("--learning-rate", "--lr", help="Peak learning rate.")] = 2e-5,
    max_length: Annotated[int, typer.Option(min=2, help="Longest trace in tokens; longer ones are left out.")] = 4096,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the order of the traces.")] = 0,
    chat_template: ChatTemplate = None,
    lora_rank: LoraRank = None,
    save_every: Annotated[int, typer.Option(min=0, help="Steps between checkpoints; 0: none.")] = 0,
    report_to: ReportTo = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Any other option of the cold start (warmup_ratio=0.1, dtype=float32); may be given again.",
        ),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the newest checkpoint.")] = False,
) -> None:
    """Cold-start a model on tool-use traces, learning from the policy's own tokens alone."""
    import importlib

    from rstar2_env.core.options import parse_options

    trainers: Any = importlib.import_module("rstar2_env.trainers")
    options = {
        "model": model,
        "output_dir": str(output_dir),
        "steps": steps,
        "epochs": epochs,
        "batch_size": batch_size,
        "rows_per_device": rows_per_device,
        "learning_rate": learning_rate,
        "max_length": max_length,
        "seed": seed,
        "chat_template": chat_template,
        "lora_rank": lora_rank or 0,
        "save_every": save_every,
        "report_to": report_to or [],
        "resume": resume,
    }
    folder = trainers.sft(trainers.read_traces(traces), **{**options, **parse_options(set_ or ())})
    typer.echo(f"The model is in {folder}.")
