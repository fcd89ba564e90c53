"""``rstar2 agents``: list the agents, one line each."""

from __future__ import annotations

import inspect

from rstar2_env.cli._options import Json
from rstar2_env.cli._tables import print_named


def agents_command(as_json: Json = False) -> None:
    """List the agents that `rstar2 eval --agent` takes, with their options (--set agent.NAME=VALUE)."""
    import importlib

    registry = importlib.import_module("rstar2_env.agents").AGENTS
    agents = {name: registry.get(name) for name in registry}
    print_named(agents, lambda agent: dict.fromkeys(inspect.signature(agent).parameters), as_json=as_json)
