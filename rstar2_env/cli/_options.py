"""Arguments shared by several commands, so that each has the same name, meaning and help text everywhere.

Commands take further options with ``--set NAME=VALUE``. If a command has several parts, the name begins with the part:
``--set env.max_turns=3 --set agent.corrupt=true``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rstar2_env.problems import ProblemSource
    from rstar2_env.sandbox.limits import Limits

Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object on stdout, and nothing else.")]
Overwrite = Annotated[
    bool,
    typer.Option(
        "--overwrite",
        help="Replace the output of an earlier run of this command. A folder is replaced only if it contains no "
        "files of other programs.",
    ),
]
Trust = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="Trust the given files, even if their source is unknown: they may then select code to run, "
        "sandboxes, environment variables and network addresses (docs/trust.md).",
    ),
]
EnvId = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="Environment: a Gymnasium id (rstar2/MathTool-v0), or your own environment in a file "
        "(./mine.py:mine/Divisors-v0).",
    ),
]
EnvOption = Annotated[
    str,
    typer.Argument(
        metavar="--env ID",
        help="Environment: a Gymnasium id (rstar2/MathTool-v0), or your own environment in a file "
        "(./mine.py:mine/Divisors-v0).",
    ),
]
RunName = Annotated[
    str,
    typer.Argument(
        metavar="--run RUN",
        help="Folder of a run, or file of an evaluation. RUN@STEP selects the evaluation at a training step "
        "[default: the last].",
    ),
]
WrapOption = Annotated[
    list[str] | None,
    typer.Option(
        "--wrap",
        metavar="NAME[:OPTION=VALUE,...]",
        help="Wrapper around the environment, with its options (fault_injection:rate=0.1,kinds=timeout+lost). "
        "Repeat the option to add several wrappers; the first is the innermost. `rstar2 list wrappers` "
        "lists all wrappers.",
    ),
]
ToolOption = Annotated[
    list[str] | None,
    typer.Option(
        "--tool",
        metavar="NAME",
        help="Tool that replaces the environment's own tools: python, notebook, or the tools of an MCP server "
        "(mcp:./server.py, mcp:http://HOST:PORT/mcp or mcp:COMMAND, which need the package extra `mcp`). "
        "Repeat the option to use several tools. --set env.tools does the same.",
    ),
]
EnvSet = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="env.NAME=VALUE",
        help="Set an option of the environment (env.max_turns=3). Repeat the option to set several.",
    ),
]
ProviderSet = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Set an option of the sandbox provider; the value may be JSON. Repeat the option to set several.",
    ),
]
HttpPort = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=65535,
        help="Serve HTTP on this port of this machine; 0 chooses a free port [default: communicate over "
        "standard input and output].",
    ),
]
IsolationOption = Annotated[
    str,
    typer.Option(
        help="Isolation of the programs. strict: refuse to start if a required layer of isolation is missing; "
        "best: use the layers that are available; none: no isolation."
    ),
]
ChatTemplate = Annotated[
    str | None,
    typer.Option(
        help="Chat template of the model: chatml, or a Jinja template [default: the template of the tokenizer]."
    ),
]
LoraRank = Annotated[
    int | None,
    typer.Option(min=0, help="Rank of the LoRA adapters; 0 trains all weights instead of adapters [default: 0]."),
]
ReportTo = Annotated[
    list[str] | None,
    typer.Option(
        help="Service to log metrics to: tensorboard, wandb, trackio, or another that Transformers supports. "
        "Repeat the option to use several."
    ),
]


def with_tools(settings: Iterable[str] | None, tools: Iterable[str] | None) -> list[str]:
    """Return the values of ``--set``, and one more for all values of ``--tool``: ``env.tools=[...]``."""
    import json

    chosen = list(tools or ())
    return [*(settings or ()), *([f"env.tools={json.dumps(chosen)}"] if chosen else [])]


def options_of(settings: Iterable[str] | None, *parts: str) -> dict[str, dict[str, Any]]:
    """Parse ``--set PART.NAME=VALUE`` arguments into a dict of options for each part.

    Args:
        settings: The values of ``--set``.
        *parts: The parts that the command has.

    Raises:
        ConfigurationError: An argument does not have the form PART.NAME=VALUE, or its part is not one of ``parts``.
    """
    from rstar2_env.core.errors import ConfigurationError
    from rstar2_env.core.options.declare import parse_options

    given: dict[str, list[str]] = {part: [] for part in parts}
    for each in settings or ():
        part, dot, rest = each.partition(".")
        if not dot or part not in given or "=" in part:
            example = " or ".join(f"--set {known}.NAME=VALUE" for known in parts)
            raise ConfigurationError(
                f"--set {each} does not begin with the name of the part that the option belongs to: write {example}."
            )
        given[part].append(rest)
    return {part: parse_options(options, flag=f"--set {part}.") for part, options in given.items()}


def refuse_disagreement(
    ctx: typer.Context,
    flags: Mapping[str, tuple[str, object]],
    settings: Mapping[str, tuple[str, object]],
    typed: Callable[[str, object], object],
) -> None:
    """Raise an error if a flag and a ``--set`` give different values to the same option.

    Args:
        ctx: The command that was called.
        flags: For each option that a flag gives: the flag's name in Python, and the value.
        settings: For each option that ``--set`` gives: the argument of ``--set``, and the value as text.
        typed: Function that parses the text of an option's value.

    Raises:
        ConfigurationError: An option has two values (the message names both), or the text is not a value of the option.
    """
    from rstar2_env.cli._command import flag
    from rstar2_env.core.errors import ConfigurationError

    for option in flags.keys() & settings.keys():
        (name, value), (written, text) = flags[option], settings[option]
        other = typed(option, text)
        if value not in (other, [other], str(other)):
            raise ConfigurationError(
                f"{flag(ctx, name, str(value))} and --set {written} give two different values to the "
                f"option {option}: omit one of them."
            )


def as_typed(value: Any, written: str) -> Any:
    """Wrap a flag's value for use as an option of a run, so that error messages show the flag with the value.

    Args:
        value: The flag's value. Numbers, texts, paths and lists are wrapped; any other value is returned unchanged.
        written: The flag as it was typed.
    """
    import json

    from rstar2_env.core.options.text import Typed, Written

    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return Written(str(value), written)
    if isinstance(value, (list, tuple)):
        return Written(json.dumps(value), written)
    return Typed(str(value), written) if isinstance(value, (str, Path)) else value


def given_by(ctx: typer.Context, **options: str) -> dict[str, Any]:
    """Return the values that the command's flags give to options; an error message about a value shows its flag.

    Args:
        ctx: The command that was called.
        **options: For each option, the name of the command's parameter that holds its value.
    """
    from rstar2_env.cli._command import flag

    return {option: as_typed(ctx.params[name], flag(ctx, name)) for option, name in options.items()}


def limits_of(ctx: typer.Context, **options: str) -> Limits:
    """Return the resource limits that the command's flags set; for the arguments see ``given_by``."""
    from rstar2_env.core.options.declare import call_with_options
    from rstar2_env.sandbox.limits import Limits

    return call_with_options("sandbox", Limits, given_by(ctx, **options))


def check_flags(
    ctx: typer.Context,
    options: Mapping[str, Mapping[str, object]],
    flags: Mapping[str, tuple[str, object]],
) -> dict[str, object]:
    """Raise an error if flags disagree with ``--set PART.NAME=VALUE``; otherwise return the values of the given flags.

    Args:
        ctx: The command that was called.
        options: The options of each part, from ``options_of``.
        flags: For each option (``"PART.NAME"``) that a flag of the command also gives: the flag's name in Python, and
            the value, or ``None`` if the flag was omitted.

    Raises:
        ConfigurationError: An option has two values; the message names both.
    """
    from rstar2_env.core.options.declare import read_loosely

    typed = {option: (name, value) for option, (name, value) in flags.items() if value is not None}
    settings = {
        f"{part}.{name}": (f"{part}.{name}={value}", value)
        for part, of_part in options.items()
        for name, value in of_part.items()
    }
    refuse_disagreement(ctx, typed, settings, lambda _, value: read_loosely(value))
    return {option: value for option, (_, value) in typed.items()}


def whole_numbers(text: str, flag: str) -> list[int]:
    """Parse whole numbers separated by commas; error messages name the option ``flag``."""
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise typer.BadParameter(
            f"{flag} must be whole numbers separated by commas, such as 1,8,16; got {text!r}."
        ) from None


def source_of(spec: str, split: str | None, default: str) -> ProblemSource:
    """Load the source of problems that ``--problems`` or an argument specifies.

    Args:
        spec: A specification for ``load_problems``.
        split: The value of ``--split``.
        default: The split to use without ``--split``, if the source has splits.

    Raises:
        ConfigurationError: The source or its split does not exist.
    """
    from rstar2_env.core.errors import ConfigurationError
    from rstar2_env.core.progress import progress
    from rstar2_env.problems import load_problems

    with progress(f"loading {spec}", show=True):
        source = load_problems(spec, split=split or default)
    if split and not source.split:
        raise ConfigurationError(
            f"The problems {spec} are not divided into splits, so there is no split {split!r}: omit "
            f"--split, or write {spec}:holdout=0.1 to split off 10 % of the problems as `test`."
        )
    return source


def layers_of(settings: Iterable[str] | None) -> list[dict[str, Any]]:
    """Parse each ``--set NAME=VALUE`` into a separate dict of options, in the given order.

    Args:
        settings: The values of ``--set``.

    Raises:
        ConfigurationError: An argument is not ``NAME=VALUE``, or a name occurs twice.
    """
    from rstar2_env.core.errors import ConfigurationError
    from rstar2_env.core.options.declare import parse_options

    names = [each.partition("=")[0].strip() for each in settings or ()]
    for name in names:
        if names.count(name) > 1:
            raise ConfigurationError(f"--set gives the option {name!r} twice: omit one of them.")
    return [parse_options([each], flag="--set ") for each in settings or ()]
