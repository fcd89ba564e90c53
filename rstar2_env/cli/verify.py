"""``rstar2 verify``: grade an answer, or a file of answer pairs."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rstar2_env.cli._options import Json
from rstar2_env.cli._printing import say

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rstar2_env.verification.report import Graded, Pair
    from rstar2_env.verification.verdict import Verdict


def verify_command(
    gold: Annotated[
        str | None, typer.Argument(metavar="GOLD", help="Correct answer of the problem.", show_default=False)
    ] = None,
    pred: Annotated[
        str | None,
        typer.Argument(metavar="PRED", help="Answer to grade: the answer alone, or a whole response that contains it."),
    ] = None,
    jsonl: Annotated[
        Path | None,
        typer.Option(
            "--jsonl",
            help='Grade the pairs in this file instead; each line is a JSON object with "gold" (correct '
            'answer), "pred" (answer to grade) and optionally "question", "expected" (the right grade: true or '
            'false), "id" and "categories".',
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    question: Annotated[
        str | None,
        typer.Option(
            help="Question of the problem; an answer that only copies a formula from the question is graded as wrong."
        ),
    ] = None,
    as_json: Json = False,
    compare: Annotated[
        bool, typer.Option("--compare", help="Also grade with the package math-verify alone, for comparison.")
    ] = False,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Number of worker processes [default: one per CPU core].")
    ] = None,
    timeout: Annotated[float, typer.Option(min=0.01, help="Time limit for grading one pair, in seconds.")] = 1.0,
    tolerance: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            help="Largest relative difference between two numbers that still counts as equal, such as 0.01 for 1 %.",
        ),
    ] = None,
    lenient: Annotated[
        bool,
        typer.Option(
            "--lenient", help="Grade with the lenient rules: strict=False in docs/verification.md, section Options."
        ),
    ] = False,
) -> None:
    """Grade an answer against the gold answer and give the reason, or grade a file of such pairs in parallel.

    For a single pair, exits with 0 if the answer is correct and with 1 if it is wrong. If an answer begins with a
    minus sign, put -- before it: rstar2 verify -- -3 -6/2. `rstar2 verify --run RUN` regrades the answers of a run, and
    `rstar2 verify --run RUN --episode 12` replays an episode.
    """
    from rstar2_env.verification import verify_response
    from rstar2_env.verification.api import math_verify_alone
    from rstar2_env.verification.report import read_pairs, summarise
    from rstar2_env.verification.workers.pool import set_workers, shared_pool

    if (jsonl is None) == (gold is None) or (gold is None) != (pred is None):
        raise typer.BadParameter("Give either GOLD and PRED, or --jsonl FILE.")
    if jsonl is not None and question is not None:
        raise typer.BadParameter('--question applies only to GOLD and PRED: in a file, add a "question" to each line.')
    if gold is not None:
        # Start a worker first, so that its startup does not count towards the time limit.
        verify_response("1", "x", timeout_s=60)
        verdict = verify_response(
            gold, pred, question=question, tolerance=tolerance, strict=not lenient, timeout_s=timeout
        )
        alone = math_verify_alone(gold, pred, timeout_s=timeout) if compare else None
        _print_pair(verdict, alone, as_json=as_json)
        raise typer.Exit(0 if verdict.correct else 1)
    assert jsonl is not None  # an error was raised above if it is missing
    pairs = read_pairs(jsonl)
    set_workers(workers)
    threads = shared_pool().workers

    def ours(pair: Pair) -> Verdict:
        return verify_response(
            pair.gold,
            pair.pred,
            question=pair.question,
            tolerance=tolerance,
            strict=not lenient,
            timeout_s=timeout,
        )

    def theirs(pair: Pair) -> Verdict:
        return math_verify_alone(pair.gold, pair.pred, timeout_s=timeout)

    graded = _grade(pairs, ours, threads, "grading")
    summary = summarise(graded)
    others = _grade(pairs, theirs, threads, "math-verify") if compare else []
    if compare:
        summary["math_verify"] = {**summarise(others), "disagreements": _disagreements(graded, others)}
    if as_json:
        say(json.dumps(summary, ensure_ascii=True))
    else:
        _print(summary, graded, others)


def _print_pair(verdict: Verdict, alone: Verdict | None, *, as_json: bool) -> None:
    if as_json:
        found = asdict(verdict)
        say(json.dumps(found if alone is None else {**found, "math_verify": asdict(alone)}))
        return
    say(f"{'correct' if verdict.correct else 'wrong'}: {_WHY[verdict.reason]} ({verdict.method})")
    if alone is not None:
        say(f"math-verify alone: {'correct' if alone.correct else 'wrong'}: {_WHY[alone.reason]}")


_WHY = {
    "equal": "the answer equals the gold answer",
    "different": "the answer differs from the gold answer",
    "no_answer": "there is no answer",
    "unparsable_answer": "the answer cannot be parsed",
    "unparsable_gold": "the gold answer cannot be parsed, and the answer is not the same text",
    "timeout": "the comparison took too long (--timeout)",
    "too_large": "the answer is too large to compare",
    "unavailable": "no worker was available for the comparison; the answer was not graded",
}
"""Explanation of each ``Reason``, for the user."""


def _grade(pairs: Sequence[Pair], grade: Callable[[Pair], Verdict], threads: int, title: str) -> list[Graded]:
    import itertools

    from rstar2_env.core.progress import progress
    from rstar2_env.verification.report import grade_pairs

    with progress(title, total=len(pairs), show=True) as report:
        done = itertools.count(1)
        return grade_pairs(pairs, grade, threads=threads, on_done=lambda: report(next(done), len(pairs)))


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
    from rstar2_env.cli._tables import one_line, print_table

    rows = ("accuracy", "recall", "correct", "false_positives", "false_negatives", "unparsable", "timeouts")
    figures = (summary, summary["math_verify"]) if others else (summary,)
    print_table(
        ("", "rstar2", *(["math-verify"] if others else [])),
        (
            (name.replace("_", " "), *("–" if each[name] is None else f"{each[name]:g}" for each in figures))
            for name in (*rows, "unavailable", "p50_ms", "p99_ms", "max_ms")
        ),
        title=f"{summary['n']} pairs",
    )
    if summary["by_category"]:
        print_table(
            ("category", "n", "accuracy", "false positives", "false negatives"),
            ((name, *(f"{value:g}" for value in each.values())) for name, each in summary["by_category"].items()),
        )
    if summary["wrong"]:
        print_table(
            ("id", "expected", "reason", "method", "gold", "pred"),
            (
                (
                    *(item.pair.id, str(item.pair.expected), item.verdict.reason.value, item.verdict.method),
                    *(one_line(item.pair.gold), one_line(item.pair.pred or "")),
                )
                for item in graded
                if item.wrong
            ),
            title="not as expected",
        )
    if others:
        print_table(
            ("id", "expected", "rstar2", "math-verify", "gold", "pred"),
            (
                (
                    *(ours.pair.id, str(ours.pair.expected), ours.verdict.reason.value, theirs.verdict.reason.value),
                    *(one_line(ours.pair.gold), one_line(ours.pair.pred or "")),
                )
                for ours, theirs in zip(graded, others, strict=True)
                if ours.verdict.correct is not theirs.verdict.correct
            ),
            title="disagreements",
        )
