"""``rstar2 agents``: list the agents, one line each."""

from __future__ import annotations

import typer

from rstar2_env.cli._options import Json


def agents_command(as_json: Json = False) -> None:
    """List the agents that `rstar2 eval --agent` takes, with their options (--set agent.NAME=VALUE)."""
    import importlib
    import inspect
    import json

    from rstar2_env.cli._tables import print_list

    registry = importlib.import_module("rstar2_env.agents").AGENTS
    agents = {name: registry.get(name) for name in registry}
    summaries = {name: (inspect.getdoc(factory) or "").split("\n")[0] for name, factory in agents.items()}
    options = {name: list(inspect.signature(factory).parameters) for name, factory in agents.items()}
    if as_json:
        typer.echo(json.dumps({name: {"what": summaries[name], "options": options[name]} for name in agents}))
        return
    print_list(
        {name: summaries[name] + (f" Options: {', '.join(options[name])}." if options[name] else "") for name in agents}
    )
