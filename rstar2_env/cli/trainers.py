"""``rstar2 trainers``: list the trainers."""

from __future__ import annotations

import typer

from rstar2_env.cli._options import Json


def trainers_command(as_json: Json = False) -> None:
    """List the trainers, a line each."""
    import importlib
    import json

    from rstar2_env.cli._tables import print_list

    # By name, not by import: the ground floor knows no trainer.
    registry = importlib.import_module("rstar2_env.trainers").TRAINERS
    recipes = {name: registry.get(name) for name in registry}
    if as_json:
        typer.echo(json.dumps({name: recipe.summary for name, recipe in recipes.items()}))
        return
    print_list({name: recipe.summary for name, recipe in recipes.items()})
