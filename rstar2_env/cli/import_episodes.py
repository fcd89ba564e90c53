"""``rstar2 traces --from``: read episodes in the format of other tools, as traces and as an evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rstar2_env.cli._options import Overwrite
from rstar2_env.cli._printing import say


def import_episodes_command(
    source: Annotated[str, typer.Argument(metavar="--from FORMAT", help="Format of the files: atif.")],
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE", help="Files with one trajectory (.json) or one a line (.jsonl), or folders of such files."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Write one JSON line per trace.", dir_okay=False)],
    env: Annotated[
        str, typer.Option(metavar="ID", help="Environment whose settings `rstar2 verify --run` then uses.")
    ] = "rstar2/MathTool-v0",
    overwrite: Overwrite = False,
) -> None:
    """Read trajectories of ATIF as traces for a cold start, and as episodes.

    OUT.episodes.jsonl holds every episode, for `rstar2 view`, `diagnose` and `verify --run`. OUT holds those that count
    and do not state that they failed, for `rstar2 sft`; copied context in them is not trained on.
    """
    from rstar2_env.adapters.atif.files import import_trajectories

    if source != "atif":
        raise typer.BadParameter(f"--from: expected atif, got {source!r}.")
    done = import_trajectories(files, out, env=env, overwrite=overwrite)
    say(f"{done.counts['episodes']} episodes written to {done.episodes}.")
    say(f"{done.counts['traces']} traces written to {done.traces}.")
