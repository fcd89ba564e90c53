"""``rstar2 list agents``: list the agents, or show one."""

from __future__ import annotations

import inspect
from typing import Annotated

import typer

from rstar2_env.cli._options import Json
from rstar2_env.cli._tables import print_named


def agents_command(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="Agent to show with all its options: a name from the list, or your own agent (./mine.py).",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the agents that `rstar2 eval --agent` takes, with their options (--set agent.NAME=VALUE), or show one."""
    import importlib

    registry = importlib.import_module("rstar2_env.agents").AGENTS
    agents = {each: registry.get(each) for each in (registry if name is None else [name])}
    print_named(
        agents,
        lambda agent: dict.fromkeys(inspect.signature(agent).parameters),
        as_json=as_json,
        whole=name is not None,
    )
