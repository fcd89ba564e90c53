"""``rstar2 wrappers``: list the wrappers that ``--wrap`` takes, one line each."""

from __future__ import annotations

import typer

from rstar2_env.cli._options import Json


def wrappers_command(as_json: Json = False) -> None:
    """List the wrappers that `--wrap` takes, with their options (--wrap NAME:OPTION=VALUE,OPTION=VALUE)."""
    import inspect
    import json

    from rstar2_env.cli._tables import print_list
    from rstar2_env.wrappers.registry import WRAPPERS, options_of_wrapper

    wrappers = {name: WRAPPERS.get(name) for name in WRAPPERS}
    summaries = {name: (inspect.getdoc(wrapper) or "").split("\n")[0] for name, wrapper in wrappers.items()}
    options = {name: options_of_wrapper(wrapper) for name, wrapper in wrappers.items()}
    if as_json:
        shown = {name: {"what": summaries[name], "options": list(options[name])} for name in wrappers}
        typer.echo(json.dumps(shown))
        return
    print_list({name: summaries[name] + _option_text(options[name]) for name in wrappers})


def _option_text(options: dict[str, object]) -> str:
    import inspect

    if not options:
        return ""
    shown = [
        name if default in (None, inspect.Parameter.empty) else f"{name}={default}" for name, default in options.items()
    ]
    return f" Options: {', '.join(shown)}."
