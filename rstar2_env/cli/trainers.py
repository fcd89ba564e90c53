"""``rstar2 list trainers``: list the trainers, or show the parts and options of one."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rstar2_env.cli._options import Json, Trust
from rstar2_env.cli._printing import say
from rstar2_env.cli._trainers import import_trainers


def trainers_command(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="Trainer to print with all parts and options: a name from the list, your own recipe "
            "(./mine.py:MINE), or a file of options.",
        ),
    ] = None,
    trust: Trust = False,
    as_json: Json = False,
) -> None:
    """List the trainers, or print one with all parts and options as a file for `rstar2 train`."""
    import json

    trainers: Any = import_trainers()
    if name is not None:
        _show(trainers, name, as_json=as_json)
        return
    recipes = [trainers.TRAINERS.get(known) for known in trainers.TRAINERS]
    if as_json:
        say(json.dumps([_about(recipe) for recipe in recipes]))
        return
    from rstar2_env.cli._tables import print_list

    print_list(
        {recipe.name: f"{recipe.summary} ({recipe.paper})" if recipe.paper else recipe.summary for recipe in recipes}
    )


def _about(recipe: Any) -> dict[str, str]:
    return {field: getattr(recipe, field) for field in ("name", "summary", "paper", "source", "checked")}


def _show(trainers: Any, name: str, *, as_json: bool) -> None:
    from rstar2_env.core.files.json_values import jsonable
    from rstar2_env.core.files.toml_text import toml_text

    recipe, options = trainers.find_recipe(name)
    config = recipe.configure({"model": ""}, options)
    record = {**_about(recipe), **jsonable(config.record())}
    record["model"]["path"] = record["model"]["path"] or None
    if as_json:
        import json

        say(json.dumps(record))
        return
    record["parts"] = {slot: _writable(part) for slot, part in record["parts"].items()}
    say(toml_text(record), nl=False)


def _writable(part: Any) -> Any:
    """Convert a part to TOML values. TOML has no null, so a part with a ``None`` option becomes a string."""
    if isinstance(part, list):
        return [_writable(each) for each in part]
    if None not in part.values():
        return part
    from rstar2_env.core.options.parts import write_part

    return write_part(part["name"], {name: value for name, value in part.items() if name != "name"})
