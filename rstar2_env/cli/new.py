"""``rstar2 new``: write an environment, an agent or a part, with a test."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rstar2_env.cli._printing import say


def new_command(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            help="Kind of part to write: env, agent, tool, wrapper, problems, verifier, trainer, or a part of "
            "a trainer: reward, rollout, sampler, selector, advantage, loss, aggregation, correction, "
            "hook.",
        ),
    ],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the new part, such as divisors.")],
    package: Annotated[
        bool,
        typer.Option(
            "--package",
            help="Write an installable Python package: pyproject.toml with the entry point, the module, its "
            "test, README and a CI workflow.",
        ),
    ] = False,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            help="Folder to write to; with --package, the package gets its own subfolder.",
            file_okay=False,
        ),
    ] = Path(),
) -> None:
    """Write a small working example of an environment, an agent or a part, with a test, as a start for your own.

    Writes NAME.py and test_NAME.py, or with --package a folder NAME. The test passes as written. No file is
    overwritten.
    """
    from rstar2_env.cli._scaffold import KINDS, scaffold
    from rstar2_env.core.errors import UnknownNameError

    if kind not in KINDS:
        raise UnknownNameError("kind", kind, KINDS)
    made = scaffold(kind, name, out, package=package)
    made.write()
    for path in made.files:
        say(f"wrote {made.folder / path}", err=True)
    say(f"Test it: {made.test}")
    say(f"Use it:  {made.use}")
