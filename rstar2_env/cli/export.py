"""``rstar2 export``: the weights of a run as a folder that transformers loads, and on a hub."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def export_command(
    run: Annotated[Path, typer.Argument(help="Folder of a run, a cold start, a pipeline, or of a model.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write; it must not exist, or be empty.")],
    which: Annotated[
        str | None, typer.Option(help="best, final or checkpoint-N [default: best where there is one, else final].")
    ] = None,
    merge: Annotated[bool, typer.Option("--merge", help="Merge a LoRA adapter into the weights below it.")] = False,
    dtype: Annotated[str | None, typer.Option(help="float32, bfloat16 or float16 [default: as it is stored].")] = None,
    push: Annotated[
        str | None, typer.Option(metavar="ORG/NAME", help="Push to this repository of the hub; HF_TOKEN is the token.")
    ] = None,
    private: Annotated[bool, typer.Option("--private", help="Make the repository a private one.")] = False,
    update: Annotated[
        bool, typer.Option("--update", help="Push into a repository that holds other files, as a new commit.")
    ] = False,
) -> None:
    """Write weights as a folder that transformers loads as it stands.

    It holds the tokenizer with the chat template of the run, the generation configuration and the run's model card. A
    push that was broken off goes on when the same command is given again.
    """
    import importlib

    trainers: Any = importlib.import_module("rstar2_env.trainers")
    folder = trainers.export_model(
        run, out, which=which, merge=merge, dtype=dtype, push=push, private=private, update=update
    )
    typer.echo(f"The model is in {folder}.")
    if push:
        typer.echo(f"It is on the hub as {push}.")
