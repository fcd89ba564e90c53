"""``rstar2 export-env``: an environment as a package of another framework."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rstar2_env.cli._options import EnvId, EnvSet, Wrap


def export_env_command(
    env_id: EnvId,
    to: Annotated[str, typer.Option(help="Framework that the package is for: verifiers, lm-eval.")],
    out: Annotated[Path, typer.Option(help="Folder of the package; it must not exist, or be empty.")],
    name: Annotated[str, typer.Option(help="Name of the package [default: made of the environment's].")] = "",
    episodes: Annotated[
        int | None, typer.Option(min=1, help="Problems that lm-eval gets [default: all of a finite source].")
    ] = None,
    set_: EnvSet = None,
    wrap: Wrap = None,
) -> None:
    """Write an environment as a small package that another framework installs and plays.

    The package names the environment and its options; it needs rstar2-env where it runs.
    """
    from rstar2_env.adapters.export import export_env
    from rstar2_env.cli._options import options_of

    options = options_of(set_, "env")["env"]
    for path in export_env(env_id, to, out, name=name, options=options, wrappers=wrap or (), episodes=episodes):
        typer.echo(f"wrote {path}", err=True)
    typer.echo(str(out))
