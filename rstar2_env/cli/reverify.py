"""``rstar2 verify --run RUN``: regrade the stored answers of a run, and list the changes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rstar2_env.cli._options import Json, Overwrite, RunName, Trust
from rstar2_env.cli._printing import say

if TYPE_CHECKING:
    from rstar2_env.evaluation.stored.reverify import Regraded, Regrading


def reverify_command(
    run: RunName,
    verifier: Annotated[
        str | None,
        typer.Option(
            metavar="NAME[:OPTION=VALUE,...]",
            help="Verifier that grades the answers: rules, numeric:tolerance=0.01, model:url=...,model=..., "
            "or your own verifier [default: the verifier of the run].",
        ),
    ] = None,
    problems: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="Problems that provide the gold answers and questions [default: the gold answers and questions "
            "that the run stores].",
        ),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(
            help="Split of --problems to use, if they are divided into splits [default: the split of the run]."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Write the episodes with their new grades to this file (NAME.jsonl), for `rstar2 compare`.",
        ),
    ] = None,
    overwrite: Overwrite = False,
    workers: Annotated[int, typer.Option(min=1, help="Number of answers that are graded in parallel.")] = 8,
    trust: Trust = False,
    as_json: Json = False,
) -> None:
    """Regrade the stored answers of a run, with the run's verifier or another one, and list the changes."""
    import contextlib
    import json

    from rstar2_env.core.errors import ConfigurationError
    from rstar2_env.core.files.json_lines import add_line, begin_lines
    from rstar2_env.core.files.outputs import check_file
    from rstar2_env.core.progress import progress
    from rstar2_env.evaluation.stored.reverify import Regrading, regrade, regraded_line
    from rstar2_env.evaluation.stored.runs import find_stored, problems_of, setting_of
    from rstar2_env.verification.named import make_verifier

    stored = find_stored(run)
    setting = setting_of(stored.run)
    written = verifier or str(setting.env_options.get("verifier") or "rules")
    source = None if problems is None else problems_of(setting, problems, split)
    found = Regrading()
    if out is not None:
        check_file(out, overwrite=overwrite, inputs=[run, problems, stored.run.path], lines=True)
    with contextlib.ExitStack() as stack:
        report = stack.enter_context(progress("grading", show=True))
        file = None if out is None else stack.enter_context(begin_lines(out, ()))
        graded = regrade(stored, make_verifier(written), setting=setting, source=source, threads=workers)
        for number, regraded in enumerate(graded, 1):
            found.add(regraded)
            report(number, None)
            if file is not None:
                record = regraded.entry.episode.record()
                line = {"index": record.pop("group"), **record, **regraded.entry.more}
                add_line(file, regraded_line(regraded, line))
    if not found.graded and found.no_gold:
        raise ConfigurationError(
            f"The {found.no_gold} episodes of {run} are stored without gold answers, so they cannot be "
            "regraded: give the problems of the run.",
            option="problems",
        )
    if as_json:
        say(json.dumps(_record(found, written)))
    else:
        _show(run, written, found, out)


def _record(found: Regrading, verifier: str) -> dict[str, Any]:
    return {
        "verifier": verifier,
        "graded": found.graded,
        "correct_before": found.correct_before,
        "correct": found.correct,
        "no_gold": found.no_gold,
        "uncounted": found.uncounted,
        "unavailable": found.unavailable,
        "changes": [_change(regraded) for regraded in found.changes],
    }


def _change(regraded: Regraded) -> dict[str, Any]:
    episode = regraded.entry.episode
    assert regraded.verdict is not None  # every change has a verdict
    return {
        "index": episode.group,
        "problem_id": episode.problem_id,
        "gold": regraded.gold,
        "answer": episode.answer,
        "before": episode.correct,
        "now": regraded.verdict.correct,
        "reason": str(regraded.verdict.reason),
        "method": regraded.verdict.method,
    }


def _show(run: str, verifier: str, found: Regrading, out: Path | None) -> None:
    from rstar2_env.cli._tables import one_line, print_figures, print_table

    gained = sum(change.verdict is not None and change.verdict.correct for change in found.changes)
    rows = {
        "verifier": verifier,
        "regraded": str(found.graded),
        "correct before": str(found.correct_before),
        "correct now": str(found.correct),
        "wrong before, correct now": str(gained),
        "correct before, wrong now": str(len(found.changes) - gained),
    }
    rows |= {"skipped: no gold answer": str(found.no_gold)} if found.no_gold else {}
    rows |= {"skipped: failed, cancelled or unusable episode": str(found.uncounted)} if found.uncounted else {}
    rows |= {"skipped: verifier unavailable": str(found.unavailable)} if found.unavailable else {}
    rows |= {"written to": str(out)} if out is not None else {}
    print_figures(f"{run}, regraded", rows)
    if found.changes:
        cells = [_change(change) for change in found.changes]
        print_table(
            ("episode", "problem", "gold", "answer", "now", "reason", "method"),
            [
                (
                    *(str(cell["index"]), cell["problem_id"], one_line(cell["gold"]), one_line(cell["answer"])),
                    *("correct" if cell["now"] else "wrong", cell["reason"], cell["method"]),
                )
                for cell in cells
            ],
            title="changed grades",
        )
