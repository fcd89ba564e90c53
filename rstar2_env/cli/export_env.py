"""``rstar2 export --env``: export an environment as a package for another framework."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rstar2_env.cli._options import EnvOption, EnvSet, Overwrite, WrapOption
from rstar2_env.cli._printing import say


def export_env_command(
    env_id: EnvOption,
    to: Annotated[str, typer.Option(help="Framework that the package is written for: verifiers, lm-eval or harbor.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder to write the package to; the folder must be new or empty.")
    ],
    name: Annotated[
        str, typer.Option(help="Name of the package [default: derived from the id of the environment].")
    ] = "",
    episodes: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of problems in the package, for lm-eval and harbor [default: all problems, if their "
            "number is finite].",
        ),
    ] = None,
    overwrite: Overwrite = False,
    set_: EnvSet = None,
    wrap: WrapOption = None,
) -> None:
    """Write a small package that makes an environment available in another framework.

    The package contains the id and the options of the environment; it needs rstar2-env at run time.
    """
    from rstar2_env.adapters.export import export_env
    from rstar2_env.cli._options import options_of

    options = options_of(set_, "env")["env"]
    made = export_env(
        env_id, to, out, name=name, options=options, wrappers=wrap or (), episodes=episodes, overwrite=overwrite
    )
    for path in made:
        say(f"wrote {path}", err=True)
    say(str(out))
