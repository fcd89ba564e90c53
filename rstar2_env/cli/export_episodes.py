"""``rstar2 export --to``: write the episodes of a run in the format of other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rstar2_env.cli._options import Overwrite
from rstar2_env.cli._printing import say


def export_episodes_command(
    to: Annotated[str, typer.Argument(metavar="--to FORMAT", help="Format to write the episodes in: atif.")],
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="Folder of a run, or file of an evaluation, that holds the episodes.")
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder to write the trajectories to; the folder must be new or empty.")
    ],
    overwrite: Overwrite = False,
) -> None:
    """Write every episode of a run as a trajectory of ATIF 1.8, one JSON file each.

    Token ids and log-probabilities are written if the run keeps them (`keep_tokens`). Data for which ATIF has no field
    is written under ATIF's key `extra`; `rstar2 traces --from atif` reads such data back.
    """
    from rstar2_env.adapters.atif.files import export_trajectories

    if to != "atif":
        raise typer.BadParameter(
            f"--to names the unknown format {to!r}: episodes can only be written as atif. To write an "
            "environment as a package (verifiers, lm-eval or harbor), use rstar2 export --env ID --to FORMAT."
        )
    count = export_trajectories(run, out, overwrite=overwrite)
    say(f"{count} trajectories written to {out}.")
