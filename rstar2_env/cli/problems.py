"""``rstar2 problems``: look at a source of problems, write it as JSONL, leave out what benchmarks hold."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rstar2_env.cli._command import Command

if TYPE_CHECKING:
    from rstar2_env.problems import Problem, ProblemSource

app = typer.Typer(
    help="Look at problems: a file, a set of the field (gsm8k), or a family with options (arithmetic:level=3).",
    no_args_is_help=True,
)

_Spec = Annotated[
    str,
    typer.Argument(
        metavar="SPEC",
        help="File (JSONL, JSON, CSV, TSV, Parquet), folder of save_to_disk, set of the field, hf:owner/name, or "
        "family; with options after a colon: data.csv:question=problem,answer=solution|boxed",
    ),
]
_Split = Annotated[str, typer.Option(help="Split, where the source has splits.")]
_Count = Annotated[int, typer.Option("-n", "--count", min=1, help="How many to look at, where it never ends.")]
_Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
_Out = Annotated[Path, typer.Option(help="JSONL file to write.", dir_okay=False)]
_Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace --out if it exists.")]


@app.command(cls=Command)
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

    from rstar2_env.cli._shared import print_table
    from rstar2_env.problems import load_problems

    for problem in itertools.islice(load_problems(spec, split=split), count):
        if as_json:
            typer.echo(json.dumps(dataclasses.asdict(problem), default=str))
            continue
        rows = {"question": problem.question, "answer": problem.answer, "source": problem.source}
        rows |= {name: str(value) for name, value in problem.meta.items()}
        print_table(problem.id, rows)


@app.command(cls=Command)
def stats(spec: _Spec, count: _Count = 1000, split: _Split = "train", as_json: _Json = False) -> None:
    """Count and measure: lengths, kinds of answers, fields, questions that come twice, answers that contradict."""
    import json

    from rstar2_env.cli._shared import print_table
    from rstar2_env.problems import FiniteSource, load_problems
    from rstar2_env.problems.stats import problem_stats

    source = load_problems(spec, split=split)
    figures = problem_stats(_first(source, count))
    if as_json:
        typer.echo(json.dumps({"name": source.name, "split": source.split, **figures}))
        return
    endless = "" if isinstance(source, FiniteSource) else f", the first {count} of an unlimited source"
    print_table(
        f"{source.name} ({source.split}){endless}",
        {name.replace("_", " "): _text(value) for name, value in figures.items()},
    )


@app.command(cls=Command)
def write(spec: _Spec, out: _Out, count: _Count = 1000, split: _Split = "train", overwrite: _Overwrite = False) -> None:
    """Write a source as JSONL, with its columns renamed and its conditions applied."""
    from rstar2_env.problems import load_problems
    from rstar2_env.problems.files.write import write_jsonl

    written = write_jsonl(_first(load_problems(spec, split=split), count), out, overwrite=overwrite)
    typer.echo(f"{written} problems written to {out}", err=True)


@app.command(cls=Command)
def decontaminate(
    problems: Annotated[str, typer.Option(metavar="SPEC", help="What to clean.")],
    against: Annotated[
        list[str], typer.Option(metavar="SPEC", help="Benchmark; may be given again, or followed by more.")
    ],
    out: _Out,
    more: Annotated[list[str] | None, typer.Argument(metavar="[SPEC]...", help="More benchmarks.")] = None,
    ngram: Annotated[int, typer.Option(min=1, help="Words in a run that is enough of an overlap.")] = 8,
    split: _Split = "train",
    against_split: Annotated[str, typer.Option(help="Split of the benchmarks.")] = "test",
    report: Annotated[
        Path | None, typer.Option(help="Write why each problem was left out, one JSON object a line.", dir_okay=False)
    ] = None,
    count: _Count = 1000,
    overwrite: _Overwrite = False,
    as_json: _Json = False,
) -> None:
    """Leave out the problems that have a run of words in common with a benchmark, as the paper did."""
    import json

    from rstar2_env.cli._shared import print_table
    from rstar2_env.problems import load_problems
    from rstar2_env.problems.decontaminate import Benchmarks, Decontaminated
    from rstar2_env.problems.files.write import write_jsonl

    others = {spec: load_problems(spec, split=against_split) for spec in [*against, *(more or ())]}
    benchmarks = Benchmarks({source.name: _first(source, count) for source in others.values()}, ngram=ngram)
    found = Decontaminated()
    source = load_problems(problems, split=split)

    def clean() -> Iterable[Problem]:
        for problem in _first(source, count):
            overlap = benchmarks.overlap(problem)
            if overlap is None:
                yield problem
            else:
                found.dropped.append(overlap)

    found.kept = write_jsonl(clean(), out, overwrite=overwrite)
    if report is not None:
        report.write_text("".join(json.dumps(overlap.to_dict()) + "\n" for overlap in found.dropped), "utf-8")
    if as_json:
        typer.echo(json.dumps(found.to_dict()))
        return
    rows = {"kept": f"{found.kept}, written to {out}", "left out": f"{len(found.dropped)}"}
    rows |= {f"for {name}": f"{number}" for name, number in found.by_benchmark().items()}
    for overlap in found.dropped[:10]:
        rows[overlap.problem_id] = f"as {overlap.benchmark_id} of {overlap.benchmark}: “{overlap.words}”"
    if len(found.dropped) > 10:
        rows["and"] = f"{len(found.dropped) - 10} more (--report writes them all)"
    print_table(f"{source.name} without {ngram}-word overlaps", rows)


@app.command(cls=Command)
def sources(as_json: _Json = False) -> None:
    """List the sets of the field by name: hub path, splits, columns, licence."""
    import dataclasses
    import json

    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from rstar2_env.problems import FAMILIES, NAMED_SETS

    if as_json:
        typer.echo(json.dumps({name: dataclasses.asdict(entry) for name, entry in NAMED_SETS.items()}, default=str))
        return
    table = Table("name", "hub", "splits", "columns", "licence", "what, and what is in doubt", show_lines=True)
    for name, entry in NAMED_SETS.items():
        hub = f"{entry.hub} ({entry.config})" if entry.config else entry.hub
        splits = ", ".join(f"{ours} {entry.problems.get(ours, '')}".strip() for ours in entry.splits)
        columns = ", ".join(f"{ours}={theirs}" for ours, theirs in entry.columns.items())
        what = f"{entry.title}. {entry.doubts}".strip()
        table.add_row(name, *(escape(cell) for cell in (hub, splits, columns, entry.licence, what)))
    console = Console()
    console.print(table)
    console.print(f"Procedural families, without a download: {', '.join(FAMILIES)}")


def _first(source: ProblemSource, count: int) -> Iterable[Problem]:
    """Every problem, or the first ``count`` of a source that never ends."""
    import itertools

    from rstar2_env.problems import FiniteSource

    return source if isinstance(source, FiniteSource) else itertools.islice(source, count)


def _text(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {number}" for name, number in value.items()) or "–"
    return str(value)
