"""How a command ends after an error: one place for the user's mistakes and for Ctrl-C.

Covered: this package's errors, Gymnasium's about an id, and what the operating system says of a path that was named on
the command line: one line on stderr, below it the section of the documents that explains it, exit code 2. Ctrl-C: one
line, exit code 130. Not covered, on purpose: everything else is a bug and keeps its traceback.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand

from rstar2_env.core.errors import ConfigurationError, Rstar2Error


class Command(TyperCommand):
    """A command that reports the user's mistakes in terms of the flags that were typed, without a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with _told(ctx):
            return super().invoke(ctx)


def flag(ctx: typer.Context, name: str, value: str | None = None) -> str:
    """How the command line sets an option that Python calls ``name``: ``--episodes``, or ``--set NAME=VALUE``.

    Args:
        ctx: The command that was called.
        name: The option's name in Python; the command's parameter for it has the same name, with an
            underscore after it where that is a word of Python (``from_``).
        value: What it is to be given.
    """
    parameters = {parameter.name: parameter for parameter in ctx.command.params}
    parameter = parameters.get(name) or parameters.get(f"{name}_")
    if parameter is not None:
        return parameter.opts[0] if value is None else f"{parameter.opts[0]} {value}"
    given = "VALUE" if value is None else value
    return f"--set {name}={given}" if "set_" in parameters else f"{name}={given}"


def example(line: str) -> str:
    """The end of a command's help: a line to copy."""
    return f"Example: `{line}`"


@contextmanager
def _told(ctx: typer.Context) -> Iterator[None]:
    import gymnasium as gym

    try:
        yield
    except ConfigurationError as error:
        _end(ctx, error.worded(lambda name, value: flag(ctx, name, value)), error)
    except (Rstar2Error, gym.error.UnregisteredEnv, gym.error.DependencyNotInstalled) as error:
        _end(ctx, str(error), error)
    except KeyboardInterrupt as interrupt:
        # A run that stopped in order has said so itself, and how to go on.
        if not getattr(interrupt, "told", False):
            typer.echo("Interrupted.", err=True)
        ctx.exit(130)
    except OSError as error:
        named = None if error.errno in (None, errno.EPIPE) else _named(ctx, error)
        if named is None:
            raise
        _end(ctx, f"{named}{error.filename}: {error.strerror}.", error)


def _end(ctx: typer.Context, message: str, error: BaseException) -> None:
    typer.echo(f"Error: {message}", err=True)
    for note in getattr(error, "__notes__", ()):
        typer.echo(note, err=True)
    raise typer.Exit(2) from error


def _named(ctx: typer.Context, error: OSError) -> str | None:
    """Which argument named the path of an error, as the beginning of a message; ``None`` when none did.

    A path is the user's when it was named, lies within a folder that was, or is a folder above one: whoever makes the
    folders of ``--out a/b/c`` may fail at ``a``.
    """
    if not isinstance(error.filename, (str, os.PathLike)):
        return None
    at = Path(os.path.abspath(error.filename))
    for parameter in ctx.command.params:
        for value in _texts(ctx.params.get(parameter.name or "")):
            path = Path(os.path.abspath(value))
            if at == path or path in at.parents or at in path.parents:
                return f"{parameter.opts[0]}: " if parameter.param_type_name == "option" else ""
    return None


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, (str, Path)):
        yield str(value)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _texts(each)
