"""Arguments that several commands share: each with one name, one meaning and one help text.

``--set`` is how every command takes options by name. Where a command names several parts, the name begins with the
part's: ``--set env.max_turns=3 --set agent.corrupt=true``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rstar2_env.problems import ProblemSource

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else on stdout.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace --out if it exists.")]
EnvId = Annotated[
    str,
    typer.Argument(metavar="ID", help="Gymnasium id (rstar2/MathTool-v0), or your own (./mine.py:mine/Divisors-v0)."),
]
RunName = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="Folder of a run, or file of an evaluation; RUN@STEP: after that step of training [default: the last].",
    ),
]
Wrap = Annotated[
    list[str] | None,
    typer.Option(
        "--wrap",
        metavar="NAME[:OPTION=VALUE,...]",
        help="Wrapper around the environment (fault_injection:rate=0.1,kinds=timeout+lost), the innermost first; may "
        "be given again; `rstar2 wrappers` lists them.",
    ),
]
EnvSet = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="env.NAME=VALUE", help="Option of the environment (env.max_turns=3); may be given again."
    ),
]
ProviderSet = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="Option of the provider; the value may be JSON; may be given again."
    ),
]
ChatTemplate = Annotated[
    str | None,
    typer.Option(help="chatml, or a Jinja template, in place of the tokenizer's own [default: the tokenizer's]."),
]
LoraRank = Annotated[int | None, typer.Option(min=0, help="Rank of LoRA adapters; 0 trains all weights [default: 0].")]
ReportTo = Annotated[list[str] | None, typer.Option(help="tensorboard, wandb, trackio, ...; may be given again.")]


def options_of(written: Iterable[str] | None, *parts: str) -> dict[str, dict[str, Any]]:
    """The options of each part, of what ``--set PART.NAME=VALUE`` gave.

    Args:
        written: What was given.
        *parts: The parts that the command names.

    Raises:
        ConfigurationError: One is not of that form, or names another part.
    """
    from rstar2_env.core.errors import ConfigurationError
    from rstar2_env.core.options.declare import parse_options

    given: dict[str, list[str]] = {part: [] for part in parts}
    for each in written or ():
        part, dot, rest = each.partition(".")
        if not dot or part not in given or "=" in part:
            example = " or ".join(f"--set {known}.NAME=VALUE" for known in parts)
            raise ConfigurationError(f"--set {each} does not say whose option it is: write {example}.")
        given[part].append(rest)
    return {part: parse_options(options) for part, options in given.items()}


def source_of(spec: str, split: str | None, default: str) -> ProblemSource:
    """The problems that ``--problems`` or an argument names.

    Args:
        spec: What ``load_problems`` takes.
        split: What ``--split`` gave.
        default: The split without it, of a source that has splits.

    Raises:
        ConfigurationError: There is no such source, or it has no such split.
    """
    from rstar2_env.core.errors import ConfigurationError
    from rstar2_env.problems import load_problems

    source = load_problems(spec, split=split or default)
    if split and not source.split:
        raise ConfigurationError(
            f"{spec} is one part and has no split {split!r}: leave --split out, or divide it ({spec}:holdout=0.1)."
        )
    return source


def layers_of(written: Iterable[str] | None) -> list[dict[str, Any]]:
    """What each ``--set NAME=VALUE`` gave, as a layer of options; a later one goes over those before it.

    Args:
        written: What was given.

    Raises:
        ConfigurationError: One is not ``NAME=VALUE``, or a name comes twice.
    """
    from rstar2_env.core.errors import ConfigurationError
    from rstar2_env.core.options.declare import parse_options

    names = [each.partition("=")[0].strip() for each in written or ()]
    for name in names:
        if names.count(name) > 1:
            raise ConfigurationError(f"The option {name!r} is given twice.")
    return [parse_options([each]) for each in written or ()]
