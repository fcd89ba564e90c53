"""``rstar2 problems``: look at a source of problems."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(
    help="Look at problems: a JSONL file, or a family with options (arithmetic:level=3).", no_args_is_help=True
)

_Spec = Annotated[str, typer.Argument(metavar="SPEC", help="JSONL file, or a family such as arithmetic:level=3.")]
_Split = Annotated[str, typer.Option(help="Split, where the source has splits.")]


@app.command()
def show(
    spec: _Spec,
    count: Annotated[int, typer.Option("-n", "--count", min=1, help="How many.")] = 3,
    split: _Split = "train",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")] = False,
) -> None:
    """Show the first problems."""
    import dataclasses
    import itertools
    import json

    from rstar2_env.cli._shared import print_table, user_errors
    from rstar2_env.problems import load_problems

    with user_errors():
        for problem in itertools.islice(load_problems(spec, split=split), count):
            if as_json:
                typer.echo(json.dumps(dataclasses.asdict(problem), default=str))
                continue
            rows = {"question": problem.question, "answer": problem.answer, "source": problem.source}
            rows |= {name: str(value) for name, value in problem.meta.items()}
            print_table(problem.id, rows)


@app.command()
def stats(
    spec: _Spec,
    count: Annotated[
        int, typer.Option("-n", "--count", min=1, help="How many to look at, where it never ends.")
    ] = 1000,
    split: _Split = "train",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Count and measure: lengths, kinds of answers, fields, questions that come twice."""
    import json

    from rstar2_env.cli._shared import print_table, user_errors
    from rstar2_env.problems import FiniteSource, load_problems
    from rstar2_env.problems.stats import problem_stats

    with user_errors():
        source = load_problems(spec, split=split)
        looked_at = list(source) if isinstance(source, FiniteSource) else [source[index] for index in range(count)]
    figures = problem_stats(looked_at)
    if as_json:
        typer.echo(json.dumps({"name": source.name, "split": source.split, **figures}))
        return
    endless = "" if isinstance(source, FiniteSource) else f", the first {count} of an unlimited source"
    print_table(
        f"{source.name} ({source.split}){endless}",
        {name.replace("_", " "): _text(value) for name, value in figures.items()},
    )


def _text(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {number}" for name, number in value.items()) or "–"
    return str(value)
