"""Error handling of every command: converts user errors and Ctrl-C to one line and an exit code.

Covered: errors of this package, Gymnasium's errors about an environment id, operating-system errors about a path from
the command line, and a full disk. Each prints one line on stderr, followed by the documentation section that explains
it, and exits with 2. Ctrl-C prints one line and exits with 130. Not covered, on purpose: any other exception is a bug
and keeps its traceback.
"""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from rstar2_env.cli._calls import read_call
from rstar2_env.cli._printing import say
from rstar2_env.core.command.running_command import set_running_command
from rstar2_env.core.errors import ConfigurationError, DiskFullError, Rstar2Error
from rstar2_env.core.files.full_disk import is_disk_full
from rstar2_env.core.options.bounds import check_count
from rstar2_env.core.trust import READS_OWN_FILES, bounds

_USAGE_ERROR: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "UsageError")
"""Base class of errors about wrong arguments, from click or from the copy of click in newer versions of typer."""


def _refused_value(cause: Any) -> str:
    """Return ", got VALUE." for the message about a wrong argument, or "" if ``cause`` does not name one value."""
    found = cause.errors() if callable(getattr(cause, "errors", None)) else []
    return f", got {found[0]['input']!r}." if len(found) == 1 and "input" in found[0] else ""


def _commands(error: Any) -> str:
    """Return a sentence that lists the known commands if the error is an unknown command; "" for other errors."""
    known = getattr(error.ctx and error.ctx.command, "commands", {})
    return f" Known: {', '.join(known)}." if error.message.startswith("No such command") else ""


def _reported(error: Any, ctx: Any) -> Exception:
    """Print the error about a wrong argument, and return the exception that ends the program."""
    if type(error).__name__ == "NoArgsIsHelpError":  # this exception prints the help itself
        raise error
    place = error.ctx or ctx
    parameter, message = getattr(error, "param", None), error.format_message()
    if parameter is not None and parameter.name in _typed_names(place):
        error.param_hint = repr(_typed_names(place)[parameter.name])
        message = error.format_message()
    elif isinstance(error, typer.BadParameter) and parameter is None and error.param_hint is None:
        message = error.message  # format_message would prepend "Invalid value: "
    say(f"Error: {message}{_refused_value(error.__cause__)}{_commands(error)}", err=True)
    say(f"docs: {place.command_path} --help", err=True)
    return typer.Exit(2)


class _PlainSwitches:
    """Base of commands whose help shows a flag without a value type (``--json``, not ``--json BOOLEAN``)."""

    def get_params(self, ctx: Any) -> Any:
        """Return the command's parameters, set up so that the help shows flags without a value type."""
        parameters = super().get_params(ctx)  # type: ignore[misc]  # of TyperCommand or TyperGroup
        for parameter in parameters:
            if getattr(parameter, "is_flag", False):
                vars(parameter)["display_type_rich"] = lambda ctx: None
        return parameters


class CliGroup(_PlainSwitches, TyperGroup):
    """The group of all subcommands; it also accepts flags that select another command, and old names (``_calls``)."""

    def invoke(self, ctx: Any) -> Any:
        """Run the subcommand; report a wrong argument in the same style as all other errors."""
        try:
            return super().invoke(ctx)
        except _USAGE_ERROR as error:
            raise _reported(error, ctx) from error

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; print a note for each old name that was replaced."""
        call = read_call(args)
        for note in call.notes:
            say(note, err=True)
        try:
            return super().parse_args(ctx, list(call.arguments))
        except _USAGE_ERROR as error:
            raise _reported(error, ctx) from error


class CliCommand(_PlainSwitches, TyperCommand):
    """A command that reports a user's errors without a traceback, and names options as the user typed them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; refuse an option that lacks its value or has two different values."""
        if not ctx.resilient_parsing:
            parameters = self.get_params(ctx)
            typed = typed_options(args, parameters)
            if any(option.name == "--help" for option in typed):
                return super().parse_args(ctx, args)
            if reason := _reason_against(typed, _by_name(parameters)):
                ctx.fail(reason)
            ctx.meta[_TYPED_NAMES] = {option.parameter.name: option.name for option in typed}
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command, and report errors."""
        set_running_command(ctx.info_name or "")
        try:
            with _reported_errors(ctx), _bounds(ctx):
                for parameter in ctx.command.params:
                    written = flag(ctx, parameter.name) if parameter.param_type_name == "option" else parameter.name
                    value = ctx.params.get(parameter.name)
                    check_count(parameter.name, value, written=written)
                    if isinstance(value, float) and not math.isfinite(value):
                        raise ConfigurationError(f"{written} must be a finite number, not {value}.")
                return super().invoke(ctx)
        finally:
            set_running_command("")


_TYPED_NAMES = "rstar2 typed names"
"""Key in the context's ``meta``; the value is a dict with the name that the user typed for each parameter (``-n``)."""


def _typed_names(ctx: Any) -> dict[str, str]:
    names: dict[str, str] = ctx.meta.get(_TYPED_NAMES, {})
    return names


@dataclass(frozen=True, slots=True)
class TypedOption:
    """An option on a command line.

    Attributes:
        parameter: The parameter of the command.
        name: The name that was typed.
        value: The value that was typed; for a switch, whether it is on; ``None`` if there is no value.
        joined: Whether name and value are one word (``--out=runs/x``, ``-n5``).
    """

    parameter: Any
    name: str
    value: str | bool | None
    joined: bool


def typed_options(words: Sequence[str], parameters: Iterable[Any]) -> list[TypedOption]:
    """Find the options of a command on its command line, in the order in which they were typed.

    Args:
        words: The arguments of the command.
        parameters: The command's parameters.
    """
    known = _by_name(parameters)
    found: list[TypedOption] = []
    rest = iter(words)
    for word in rest:
        if word == "--":
            break
        if word.startswith("--"):
            name, joined, value = word.partition("=")
        else:  # after a short name, the value follows without an equals sign
            name, joined, value = word[:2], word[2:], word[2:]
        parameter = known.get(name)
        if parameter is None:
            continue
        if parameter.is_flag:
            found.append(TypedOption(parameter, name, name in parameter.opts, joined=False))
        else:
            found.append(TypedOption(parameter, name, value if joined else next(rest, None), joined=bool(joined)))
    return found


def _by_name(parameters: Iterable[Any]) -> dict[str, Any]:
    """Return the parameters that are options, keyed by each name of an option (``-n``, ``--episodes``)."""
    options = (parameter for parameter in parameters if parameter.param_type_name == "option")
    return {name: option for option in options for name in (*option.opts, *option.secondary_opts)}


def _reason_against(typed: Iterable[TypedOption], known: Collection[str]) -> str:
    """Return an error message if an option lacks its value, or has two different values; otherwise "".

    Args:
        typed: The options on the command line.
        known: All names of the command's options.
    """
    seen: dict[str, TypedOption] = {}
    for option in typed:
        if option.value is None:
            return f"Option {option.name} needs a value."
        if not option.joined and str(option.value).partition("=")[0] in known:
            return (
                f"Option {option.name} needs a value, but the next word is the option {option.value}. If this is the "
                f"value, write {option.name}{'=' if option.name.startswith('--') else ''}{option.value}."
            )
        other = seen.setdefault(option.parameter.name, option)
        if other.value != option.value and not option.parameter.multiple:
            return f"{_written(other)} and {_written(option)} disagree: omit one of them."
    return ""


def _written(option: TypedOption) -> str:
    return option.name if isinstance(option.value, bool) else f"{option.name} {option.value}"


def flag(ctx: typer.Context, name: str, value: str | None = None) -> str:
    """Return the command-line form of the Python option ``name``: ``--episodes``, or ``--set NAME=VALUE``.

    For an option with several names, this is the name that the user typed, or else the first long name; for an argument
    without a flag, it is the argument's name. The text is empty if the command has neither such a parameter nor
    ``--set``.

    Args:
        ctx: The command that was called.
        name: The option's name in Python. The command's parameter has the same name, with a trailing underscore if
            the name is a Python keyword (``from_``).
        value: The value to show after the option.
    """
    parameters = {parameter.name: parameter for parameter in ctx.command.params}
    parameter = parameters.get(name) or parameters.get(f"{name}_")
    if parameter is not None:
        long = next((name for name in parameter.opts if name.startswith("--")), parameter.opts[0])
        name = _typed_names(ctx).get(parameter.name or "", long)
        return name if value is None or getattr(parameter, "is_flag", False) else f"{name} {value}"
    shown = "VALUE" if value is None else value
    return f"--set {name}={shown}" if "set_" in parameters else ""


def is_typed(ctx: typer.Context, name: str) -> bool:
    """Whether the user gave the parameter ``name`` on the command line."""
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def example(line: str) -> str:
    """Format an example command line for the end of a command's help."""
    return f"Example: `{line}`"


def _bounds(ctx: typer.Context) -> AbstractContextManager[None]:
    """Return a context in which code may be imported only from files and modules that the user's arguments name.

    With ``--trust``, files (such as a run's configuration) may name code to import too.
    """
    values = (value for name, value in ctx.params.items() if is_typed(ctx, name))
    typed = [text for value in values for text in _texts(value)]
    command = ctx.command_path.partition(" ")[2]
    return bounds(
        [*typed, *ctx.args],
        trust=bool(ctx.params.get("trust")) or "--trust" in typed,  # for `launch`, it is a trainer's argument
        own_files=command in READS_OWN_FILES,
        flag="trust" in ctx.params or command == "launch",
    )


@contextmanager
def _reported_errors(ctx: typer.Context) -> Iterator[None]:
    import gymnasium as gym

    try:
        yield
    except ConfigurationError as error:
        _exit_with_error(error.worded(lambda name, value: flag(ctx, name, value)), error)
    except (Rstar2Error, gym.error.UnregisteredEnv, gym.error.DependencyNotInstalled) as error:
        _exit_with_error(str(error), error)
    except KeyboardInterrupt:
        say("Interrupted.", err=True)
        ctx.exit(130)
    except OSError as error:
        if is_disk_full(error):
            _exit_with_error(str(DiskFullError(error.filename or _output(ctx))), error)
        prefix = None if error.errno in (None, errno.EPIPE) else _argument_of_path(ctx, error)
        if prefix is None:
            raise
        _exit_with_error(f"{prefix}{error.filename}: {error.strerror}.", error)
    except Exception as error:
        if not is_disk_full(error):
            raise
        _exit_with_error(str(DiskFullError(_output(ctx))), error)


def _output(ctx: typer.Context) -> str:
    """Return the command's output path, for messages about library errors that do not name the path themselves."""
    written = (ctx.params.get(name) for name in ("out", "output_dir", "report", "report_file"))
    return str(next((path for path in written if path is not None), "A file"))


def _exit_with_error(message: str, error: BaseException) -> None:
    say(f"Error: {message}", err=True)
    for note in getattr(error, "__notes__", ()):
        say(note, err=True)
    raise typer.Exit(2) from error


def _argument_of_path(ctx: typer.Context, error: OSError) -> str | None:
    """Return a prefix for the error message: the option that led to the failing path; ``None`` if no argument did.

    An argument led to the failing path if it is this path, one of its parent folders, or a path below it: if ``a``
    cannot be created, ``--out a/b/c`` fails at ``a``. Of several such arguments, the one nearest to the failing path is
    named. The prefix is empty for an argument without a flag.
    """
    if not isinstance(error.filename, (str, os.PathLike)):
        return None
    failed = Path(os.path.abspath(error.filename))
    found = []
    for parameter in ctx.command.params:
        for value in _texts(ctx.params.get(parameter.name or "")):
            path = Path(os.path.abspath(value))
            if failed == path or path in failed.parents or failed in path.parents:
                prefix = f"{flag(ctx, parameter.name or '')}: " if parameter.param_type_name == "option" else ""
                found.append((abs(len(path.parts) - len(failed.parts)), prefix))
    return min(found, key=itemgetter(0))[1] if found else None


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, (str, Path)):
        yield str(value)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _texts(each)
