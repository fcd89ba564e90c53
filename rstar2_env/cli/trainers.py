"""``rstar2 trainers``: list the trainers."""

from __future__ import annotations

from typing import Annotated

import typer


def trainers_command(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """List the trainers, a line each."""
    import importlib
    import json

    # By name, not by import: the ground floor knows no trainer.
    registry = importlib.import_module("rstar2_env.trainers").TRAINERS
    recipes = {name: registry.get(name) for name in registry}
    if as_json:
        typer.echo(json.dumps({name: recipe.summary for name, recipe in recipes.items()}))
        return
    width = max(map(len, recipes))
    for name, recipe in recipes.items():
        typer.echo(f"{name:<{width}}  {recipe.summary}")
