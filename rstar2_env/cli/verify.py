"""``rstar2 verify``: grade a file of answer pairs and print how it went."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rstar2_env.verification.report import Graded, Pair
    from rstar2_env.verification.verdict import Verdict


def verify_command(
    jsonl: Annotated[
        Path,
        typer.Option(
            "--jsonl", help='Lines of {"gold", "pred"[, "expected", "id", "categories"]}.', exists=True, dir_okay=False
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
    compare: Annotated[bool, typer.Option("--compare", help="Grade with math-verify alone as well.")] = False,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Worker processes [default: one for each processor].")
    ] = None,
    timeout: Annotated[float, typer.Option(min=0.01, help="Seconds that one pair may take.")] = 1.0,
    tolerance: Annotated[float | None, typer.Option(min=0.0, help="Relative tolerance between numbers.")] = None,
    lenient: Annotated[
        bool, typer.Option("--lenient", help="Apply the lenient rules of docs/verification.md.")
    ] = False,
) -> None:
    """Grade answers against gold answers, in parallel."""
    from rstar2_env.verification import verify_response
    from rstar2_env.verification.api import math_verify_alone
    from rstar2_env.verification.report import read_pairs, summarise
    from rstar2_env.verification.workers.pool import set_workers, shared_pool

    pairs = read_pairs(jsonl)
    set_workers(workers)
    threads = shared_pool().workers

    def ours(pair: Pair) -> Verdict:
        return verify_response(pair.gold, pair.pred, tolerance=tolerance, strict=not lenient, timeout=timeout)

    def theirs(pair: Pair) -> Verdict:
        return math_verify_alone(pair.gold, pair.pred, timeout=timeout)

    graded = _grade(pairs, ours, threads, "grading", quiet=as_json)
    summary = summarise(graded)
    others = _grade(pairs, theirs, threads, "math-verify", quiet=as_json) if compare else []
    if compare:
        summary["math_verify"] = {**summarise(others), "disagreements": _disagreements(graded, others)}
    if as_json:
        typer.echo(json.dumps(summary, ensure_ascii=True))
    else:
        _print(summary, graded, others)


def _grade(
    pairs: Sequence[Pair], grade: Callable[[Pair], Verdict], threads: int, title: str, *, quiet: bool
) -> list[Graded]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from rstar2_env.verification.report import grade_pairs

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=quiet) as progress:
        task = progress.add_task(title, total=len(pairs))
        return grade_pairs(pairs, grade, threads=threads, on_done=lambda: progress.advance(task))


def _disagreements(graded: Sequence[Graded], others: Sequence[Graded]) -> list[dict[str, Any]]:
    return [
        {
            "id": ours.pair.id,
            "ours": ours.verdict.correct,
            "math_verify": theirs.verdict.correct,
            "expected": ours.pair.expected,
        }
        for ours, theirs in zip(graded, others, strict=True)
        if ours.verdict.correct is not theirs.verdict.correct
    ]


def _print(summary: dict[str, Any], graded: Sequence[Graded], others: Sequence[Graded]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    table = Table("", "rstar2", *(["math-verify"] if others else []), title=f"{summary['n']} pairs")
    rows = ("accuracy", "recall", "correct", "false_positives", "false_negatives", "unparsable", "timeouts")
    for name in (*rows, "unavailable", "p50_ms", "p99_ms", "max_ms"):
        values = [summary[name]] + ([summary["math_verify"][name]] if others else [])
        table.add_row(name.replace("_", " "), *("–" if value is None else f"{value:g}" for value in values))
    console.print(table)
    if summary["by_category"]:
        table = Table("category", "n", "accuracy", "false positives", "false negatives")
        for name, figures in summary["by_category"].items():
            table.add_row(escape(name), *(f"{value:g}" for value in figures.values()))
        console.print(table)
    if summary["wrong"]:
        table = Table("id", "expected", "reason", "method", "gold", "pred", title="not as expected")
        for item in graded:
            if item.wrong:
                cells = (item.pair.id, str(item.pair.expected), item.verdict.reason.value, item.verdict.method)
                table.add_row(*(escape(cell) for cell in (*cells, _cut(item.pair.gold), _cut(item.pair.pred or ""))))
        console.print(table)
    if others:
        table = Table("id", "expected", "rstar2", "math-verify", "gold", "pred", title="disagreements")
        for ours, theirs in zip(graded, others, strict=True):
            if ours.verdict.correct is not theirs.verdict.correct:
                cells = (ours.pair.id, str(ours.pair.expected), ours.verdict.reason.value, theirs.verdict.reason.value)
                table.add_row(*(escape(cell) for cell in (*cells, _cut(ours.pair.gold), _cut(ours.pair.pred or ""))))
        console.print(table)


def _cut(text: str, width: int = 60) -> str:
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 1] + "…"
