"""``rstar2 traces --from``: convert episodes of other tools to traces and to an evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rstar2_env.cli._options import Overwrite
from rstar2_env.cli._printing import say


def import_episodes_command(
    source: Annotated[
        str, typer.Argument(metavar="--from FORMAT", help="Format of the files to convert: atif or nemo-gym.")
    ],
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE",
            help="Files to convert, with one trajectory (.json) or one per line (.jsonl); or folders that "
            "hold such files.",
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="File to write the traces to, one JSON object per line.", dir_okay=False)
    ],
    env: Annotated[
        str,
        typer.Option(
            metavar="ID",
            help="Environment to record as the origin of the episodes; `rstar2 verify --run` regrades them with the "
            "grader of this environment.",
        ),
    ] = "rstar2/MathTool-v0",
    overwrite: Overwrite = False,
) -> None:
    """Convert trajectories of ATIF, or rollouts of NeMo Gym, to traces for a cold start, and to episodes.

    OUT.episodes.jsonl holds every episode, for `rstar2 view`, `diagnose` and `verify --run`. OUT holds the traces for
    `rstar2 sft`: all trajectories except those that an infrastructure failure ended and those that failed according
    to their recorded reward or grade. Context that was copied from other trajectories is not trained on.
    """
    from rstar2_env.adapters.atif.files import FORMATS, import_trajectories

    if source not in FORMATS:
        raise typer.BadParameter(f"--from names the unknown format {source!r}: expected {' or '.join(FORMATS)}.")
    done = import_trajectories(files, out, source=source, env=env, overwrite=overwrite)
    say(f"{done.counts['episodes']} episodes written to {done.episodes}.")
    say(f"{done.counts['traces']} traces written to {done.traces}.")
