"""Runs ``rstar2`` in this process, as a shell would: through the whole command line."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from unittest import mock

import typer
import typer.testing
from typer.testing import CliRunner, Result

from rstar2_env.cli import build
from rstar2_env.cli._calls import read_call

_BUILT: dict[tuple[str, str], typer.Typer] = {}
_CONVERTED = functools.cache(typer.main.get_command)


def run(*arguments: str | Path, columns: int = 80, stdin: str | None = None) -> Result:
    """Run the command line; ``columns`` is the width of the terminal that tables are made for.

    An exception that no user should see is raised here, as the traceback it would be.
    """
    words = [str(argument) for argument in arguments]
    # Where colours are forced, rich takes what it writes into for a terminal, and asks TERM how wide that is.
    env = {"COLUMNS": str(columns), "FORCE_COLOR": None, "TTY_COMPATIBLE": None}
    result = invoke(words, env=env, stdin=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def invoke(words: Sequence[str], env: Mapping[str, str | None], stdin: str | None = None) -> Result:
    """Run the command line with these variables, and keep any exception in the result.

    The app depends on the command alone, so that it is built and converted once for each command.
    """
    call = read_call(words)
    if (app := _BUILT.get((call.name, call.module))) is None:
        app = _BUILT[call.name, call.module] = build(words)
    with mock.patch.object(typer.testing, "_get_command", _CONVERTED):
        return CliRunner().invoke(app, list(words), input=stdin, env=env, prog_name="rstar2")
