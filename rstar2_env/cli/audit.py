"""``rstar2 audit``: search a grader of this package or another framework for answers that it grades wrongly.

Not covered: the probes themselves (``rstar2_env.evaluation.audit``).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rstar2_env.cli._options import Json, Overwrite
from rstar2_env.cli._printing import say

if TYPE_CHECKING:
    from rstar2_env.evaluation.audit import AuditReport


def audit_command(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="Grader to audit: module:function or FILE.py:function (with the parameters gold and answer, "
            "or those of a TRL reward function), reasoning-gym:NAME, verifiers:TASKSET, openenv:URL or "
            "openenv:FILE.py:Class, nemo-gym:ROWS.jsonl@URL, lm-eval:TASK, inspect:module:scorer; or an "
            "environment id, reward:NAME or verifier:NAME of this package.",
            show_default=False,
        ),
    ],
    golds: Annotated[
        list[str] | None,
        typer.Option(
            "--golds",
            metavar="CLASS",
            help="Class of gold answers (correct answers) to test the grader with: integers, words and others. "
            "Repeat the option to test several [default: the classes whose gold answers the grader "
            "accepts, and distinguishes from wrong answers].",
        ),
    ] = None,
    grade_timeout: Annotated[
        float, typer.Option(min=0.1, help="Time limit for grading one answer, in seconds.")
    ] = 10.0,
    timeout: Annotated[float, typer.Option(min=1, help="Time limit for the whole audit, in seconds.")] = 600.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random choice of gold answers.")] = 0,
    report_file: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE.html", help="Also write the report as one HTML page to this file."),
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Search for answers that a grader grades wrongly; confirm each in a fresh process; exit with 1 if any is found.

    The target's code runs in separate processes, with your permissions. Each finding has a program that reproduces it
    (--json, --report).
    """
    import json

    from rstar2_env.core.files.outputs import check_file, replacing
    from rstar2_env.evaluation.audit import audit
    from rstar2_env.evaluation.audit.page import page

    if report_file is not None:
        check_file(report_file, option="report_file", overwrite=overwrite, inputs=[target], page=True)
    found = audit(target, golds=golds or (), seed=seed, grade_timeout_s=grade_timeout, timeout_s=timeout)
    if report_file is not None:
        with replacing(report_file) as partial:
            partial.write_text(page(found), encoding="utf-8")
    if as_json:
        say(json.dumps(found.to_dict()))
    else:
        _print(found)
    if not found.ok:
        raise typer.Exit(1)


def _print(found: AuditReport) -> None:
    from rstar2_env.cli._tables import print_figures, print_table

    print_figures(found.title, found.rows())
    if found.findings:
        rows = [(one.kind, one.cause, f"{one.found} of {one.tried}", one.said) for one in found.findings]
        print_table(("kind", "cause", "found", "smallest example"), rows)
    if (cheapest := found.cheapest or next(iter(found.findings), None)) is not None:
        say(f"\nReproduction ({cheapest.kind}, {cheapest.cause}):\n\n{cheapest.script}")
