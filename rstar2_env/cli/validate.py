"""``rstar2 validate``: check that an environment and its problems are suitable for training.

Without ``--level``, every problem is checked in four ways; with it, the checks of docs/validation.md run. Not covered:
the checks themselves (``rstar2_env.evaluation.validation``).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rstar2_env.cli._options import EnvId, Json, Overwrite, ToolOption, WrapOption
from rstar2_env.cli._printing import say

if TYPE_CHECKING:
    from rstar2_env.evaluation.validation import Report, Validation

_LISTED = 20


def validate_command(
    ctx: typer.Context,
    env_id: EnvId,
    level: Annotated[
        int | None,
        typer.Option(
            "--level",
            min=1,
            max=4,
            help="Check the environment as a whole, up to this level: 1 static, 2 runtime, 3 semantic, 4 "
            "statistical (docs/validation.md) [default: check each problem, and the contract of the "
            "environment].",
        ),
    ] = None,
    problems: Annotated[
        str | None, typer.Option(metavar="SPEC", help="Problems to check [default: the problems of the environment].")
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(help="Split of the problems to check, if they are divided into splits [default: train]."),
    ] = None,
    episodes: Annotated[
        int | None,
        typer.Option(
            "--episodes",
            "-n",
            min=1,
            help="Without --level: number of problems to check [default: all; 100 if the source generates "
            "problems without end]. With --level: number of episodes that each player plays [default: "
            "16].",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of the episodes; with --level, the seed of the first episode.")
    ] = 0,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Number of threads; each thread has its own environment [default: 2 per CPU core]."),
    ] = None,
    contract: Annotated[
        bool,
        typer.Option(
            help="Also check that the environment satisfies the contract of text environments "
            "(docs/environment-contract.md)."
        ),
    ] = True,
    check: Annotated[
        list[str] | None,
        typer.Option(
            "--check",
            metavar="NAME",
            help="With --level: run only the check with this name. Repeat the option to run several.",
        ),
    ] = None,
    report_file: Annotated[
        Path | None,
        typer.Option(
            "--report", metavar="FILE.html", help="With --level: also write the report as one HTML page to this file."
        ),
    ] = None,
    overwrite: Overwrite = False,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="env.NAME=VALUE",
            help="Set an option of the environment (env.max_turns=3), or, with --level, a threshold of a check "
            "(bounds.gap=0.3). Repeat the option to set several.",
        ),
    ] = None,
    tool: ToolOption = None,
    wrap: WrapOption = None,
    as_json: Json = False,
) -> None:
    """Check every problem in four ways, and the contract of the environment; exit with 1 if a check fails.

    The gold answer must earn 1 and a corrupted answer 0, a malformed turn must return a typed error, and the same
    actions must give the same results when they are repeated. With --level, the checks of docs/validation.md run
    instead. `rstar2 validate --tokens RUN|MODEL` checks the tokens of a run, or the chat template of a model.
    """
    import json

    from rstar2_env.cli._interrupt import stopped_by_ctrl_c
    from rstar2_env.cli._options import check_flags, options_of, source_of, with_tools
    from rstar2_env.core.errors import ConfigurationError
    from rstar2_env.core.files.outputs import check_file, replacing
    from rstar2_env.evaluation.validation import Validation, validate
    from rstar2_env.evaluation.validation.page import page

    if report_file is not None:
        check_file(report_file, option="report_file", overwrite=overwrite, inputs=[env_id, problems], page=True)
    given = options_of(with_tools(set_, tool), "env", *(() if level is None else ("bounds",)))
    check_flags(ctx, given, {"env.problems": ("problems", problems), "env.split": ("split", split)})
    options: dict[str, Any] = {
        "problems": None if problems is None else source_of(problems, split, "train"),
        "split": split or "train",
        "episodes": episodes,
        "seed": seed,
        "contract": contract,
        "wrappers": wrap or (),
        "env_options": given["env"],
    }
    found: Validation | Report
    if level is None:
        if check or report_file is not None:
            raise ConfigurationError(
                "--check and --report apply only with --level: add --level 1, 2, 3 or 4, or omit them."
            )
        options |= {"workers": workers}
        with stopped_by_ctrl_c("problems") as stop:
            found = validate(env_id, stop=stop, **options)
    else:
        options |= {"bounds": given["bounds"], "checks": check or ()}
        with stopped_by_ctrl_c("checks") as stop:
            found = levels = validate(env_id, level=level, stop=stop, **options)
        if report_file is not None:
            with replacing(report_file) as partial:
                partial.write_text(page(levels), encoding="utf-8")
    if as_json:
        say(json.dumps(found.to_dict(), default=str))
    elif isinstance(found, Validation):
        _print(found)
    else:
        _print_levels(found)
    if found.interrupted:
        raise typer.Exit(130)
    if not found.ok:
        raise typer.Exit(1)


def _print_levels(found: Report) -> None:
    from rstar2_env.cli._tables import print_table, print_text
    from rstar2_env.evaluation.validation.levels import HEADINGS

    print_table(HEADINGS, found.rows(), title=found.title)
    for result in found.of("failed"):
        print_text(f"{result.check.name} requires: {result.check.demands} {result.check.remedy}")


def _print(found: Validation) -> None:
    from rstar2_env.cli._tables import print_figures

    print_figures(found.title, found.rows())
    listed = [*found.faults, *found.unreadable]
    for fault in listed[:_LISTED]:
        say(f"{fault.problem_id} ({fault.check}): {fault.detail}")
    if len(listed) > _LISTED:
        say(f"... and {len(listed) - _LISTED} more (--json lists all)")
