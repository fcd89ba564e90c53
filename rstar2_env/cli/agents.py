"""``rstar2 agents``: the agents, one line each."""

from __future__ import annotations

from typing import Annotated

import typer


def agents_command(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """List the agents that `rstar2 eval --agent` takes, with their options."""
    import importlib
    import inspect
    import json

    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    registry = importlib.import_module("rstar2_env.agents").AGENTS
    agents = {name: registry.get(name) for name in registry}
    what = {name: (inspect.getdoc(factory) or "").split("\n")[0] for name, factory in agents.items()}
    options = {name: list(inspect.signature(factory).parameters) for name, factory in agents.items()}
    if as_json:
        typer.echo(json.dumps({name: {"what": what[name], "options": options[name]} for name in agents}))
        return
    table = Table("agent", "what it does", "options")
    for name in agents:
        table.add_row(name, escape(what[name]), escape(", ".join(options[name])))
    Console().print(table)
