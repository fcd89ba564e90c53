"""``rstar2 envs``: list the environments."""

from __future__ import annotations

from typing import Annotated

import typer


def envs_command(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """List the environments of this package, a line each."""
    import json

    import gymnasium as gym

    import rstar2_env  # noqa: F401  # registers the environments

    lines = {name: _first_line(spec) for name, spec in sorted(gym.registry.items()) if spec.namespace == "rstar2"}
    if as_json:
        typer.echo(json.dumps(lines))
        return
    width = max(map(len, lines))
    for name, line in lines.items():
        typer.echo(f"{name:<{width}}  {line}")


def _first_line(spec: object) -> str:
    from gymnasium.envs.registration import load_env_creator

    entry = getattr(spec, "entry_point", None)
    maker = load_env_creator(entry) if isinstance(entry, str) else entry
    return (maker.__doc__ or "").strip().partition("\n")[0]
