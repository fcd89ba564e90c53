"""Runs ``rstar2`` in this process, as a shell would: through the whole command line."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner, Result

from rstar2_env.cli import build


def run(*arguments: str | Path, columns: int = 80, stdin: str | None = None) -> Result:
    """Run the command line; ``columns`` is the width of the terminal that tables are made for.

    An exception that no user should see is raised here, as the traceback it would be.
    """
    words = [str(argument) for argument in arguments]
    # Where colours are forced, rich takes what it writes into for a terminal, and asks TERM how wide that is.
    env = {"COLUMNS": str(columns), "FORCE_COLOR": None, "TTY_COMPATIBLE": None}
    result = CliRunner().invoke(build(words), words, input=stdin, env=env, prog_name="rstar2")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result
