"""``rstar2 list wrappers``: list the wrappers that ``--wrap`` takes, or show one."""

from __future__ import annotations

from typing import Annotated

import typer

from rstar2_env.cli._options import Json
from rstar2_env.cli._tables import print_named


def wrappers_command(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="Wrapper to show with all its options: a name from the list, or your own wrapper (./mine.py).",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the wrappers that `--wrap` takes, with their options (--wrap NAME:OPTION=VALUE,...), or show one."""
    from rstar2_env.wrappers.registry import WRAPPERS, options_of_wrapper

    wrappers = {each: WRAPPERS.get(each) for each in (WRAPPERS if name is None else [name])}
    print_named(wrappers, options_of_wrapper, as_json=as_json, whole=name is not None)
