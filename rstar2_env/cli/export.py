"""``rstar2 export``: write the weights of a run as a transformers model folder, and push them to a hub."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rstar2_env.cli._options import Overwrite, Trust
from rstar2_env.cli._printing import say
from rstar2_env.cli._trainers import import_trainers


def export_command(
    run: Annotated[
        Path,
        typer.Argument(
            metavar="RUN", help="Folder that holds the weights: of a training run, a cold start, a pipeline or a model."
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder to write the model to; the folder must be new or empty.")
    ],
    which: Annotated[
        str | None,
        typer.Option(
            help="Weights to export: best (those of the best evaluation), final, or checkpoint-N [default: best "
            "if it exists, otherwise final]."
        ),
    ] = None,
    merge: Annotated[
        bool,
        typer.Option(
            "--merge",
            help="Add the weights of a LoRA adapter to the weights of the base model, so that the folder holds one "
            "whole model.",
        ),
    ] = False,
    dtype: Annotated[
        str | None,
        typer.Option(
            help="Number format of the weights: float32, bfloat16 or float16 [default: the format in which they are "
            "stored]."
        ),
    ] = None,
    push: Annotated[
        str | None,
        typer.Option(
            metavar="ORG/NAME",
            help="Also upload the model to this repository of the Hugging Face hub, with the token in the "
            "variable HF_TOKEN.",
        ),
    ] = None,
    private: Annotated[
        bool, typer.Option("--private", help="If the repository does not exist, create it as a private repository.")
    ] = False,
    overwrite: Overwrite = False,
    trust: Trust = False,
    update: Annotated[
        bool,
        typer.Option(
            "--update",
            help="Upload even if the repository already holds other files; the model is added as a new commit.",
        ),
    ] = False,
) -> None:
    """Write the weights as a folder that transformers can load directly.

    The folder includes the tokenizer with the run's chat template, the generation configuration and the run's model
    card. To resume an interrupted push, run the same command again. `rstar2 export --to atif RUN` writes the episodes
    of a run, and `rstar2 export --env ID` writes an environment as a package of another framework: add `--help` to
    either.
    """
    from rstar2_env.core.progress import progress

    trainers: Any = import_trainers()
    with progress(f"exporting {run}", show=push is None):  # during a push, the hub's client shows its own progress bars
        folder = trainers.export_model(
            run,
            out,
            which=which,
            merge=merge,
            dtype=dtype,
            push=push,
            private=private,
            update=update,
            overwrite=overwrite,
            trust=trust,
        )
    say(f"Model written to {folder}.")
    if push:
        say(f"Model pushed to the hub as {push}.")
