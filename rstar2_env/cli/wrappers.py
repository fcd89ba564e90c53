"""``rstar2 wrappers``: list the wrappers that ``--wrap`` takes, one line each."""

from __future__ import annotations

from rstar2_env.cli._options import Json
from rstar2_env.cli._tables import print_named


def wrappers_command(as_json: Json = False) -> None:
    """List the wrappers that `--wrap` takes, with their options (--wrap NAME:OPTION=VALUE,OPTION=VALUE)."""
    from rstar2_env.wrappers.registry import WRAPPERS, options_of_wrapper

    print_named({name: WRAPPERS.get(name) for name in WRAPPERS}, options_of_wrapper, as_json=as_json)
