"""``rstar2 trainers``: list the trainers, or show what one consists of."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rstar2_env.cli._options import Json


def trainers_command(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="A trainer to show with all its parts and options: one that is listed, "
            "./mine.py:MINE, or a file of options.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the trainers, or print one with every part and option as a file that `rstar2 train` takes."""
    import importlib
    import json

    # By name, not by import: the ground floor knows no trainer.
    trainers: Any = importlib.import_module("rstar2_env.trainers")
    if name is not None:
        _show(trainers, name, as_json=as_json)
        return
    recipes = [trainers.TRAINERS.get(known) for known in trainers.TRAINERS]
    if as_json:
        typer.echo(json.dumps([_about(recipe) for recipe in recipes]))
        return
    from rstar2_env.cli._tables import print_list

    print_list({one.name: f"{one.summary} ({one.paper})" if one.paper else one.summary for one in recipes})


def _about(recipe: Any) -> dict[str, str]:
    return {"name": recipe.name, "summary": recipe.summary, "paper": recipe.paper}


def _show(trainers: Any, name: str, *, as_json: bool) -> None:
    from rstar2_env.core.files.json_values import jsonable
    from rstar2_env.core.files.toml_text import toml_text

    recipe, options = trainers.find_recipe(name)
    config = recipe.configure({"model": ""}, options)
    record = {**_about(recipe), **jsonable(config.record())}
    record["model"]["path"] = record["model"]["path"] or None
    if as_json:
        import json

        typer.echo(json.dumps(record))
        return
    record["parts"] = {slot: _writable(part) for slot, part in record["parts"].items()}
    typer.echo(toml_text(record), nl=False)


def _writable(part: Any) -> Any:
    """A part as TOML can hold it: with an option that is none, which TOML cannot say, in the notation for parts."""
    if isinstance(part, list):
        return [_writable(one) for one in part]
    if None not in part.values():
        return part
    from rstar2_env.core.options.parts import write_part

    return write_part(part["name"], {name: value for name, value in part.items() if name != "name"})
