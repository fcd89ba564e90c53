"""``rstar2 problems``: show a source of problems, write it as JSONL, or remove overlap with benchmarks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rstar2_env.cli._command import CliCommand, example
from rstar2_env.cli._options import Json, Overwrite
from rstar2_env.cli._printing import say

if TYPE_CHECKING:
    from rstar2_env.problems import Problem, ProblemSource

app = typer.Typer(
    help="Show problems: a file, a public set (gsm8k), or a family with options (arithmetic:level=3).",
    no_args_is_help=True,
)

_Spec = Annotated[
    str,
    typer.Argument(
        metavar="SPEC",
        help="Problems to read: a file (JSONL, JSON, CSV, TSV, Parquet), a folder written by save_to_disk, a "
        "public set by name, hf:owner/name on the Hugging Face hub, or a family of generated problems. "
        "Options follow a colon: data.csv:question=problem,answer=solution|boxed.",
    ),
]
_Split = Annotated[
    str | None, typer.Option(help="Split of the problems to read, if they are divided into splits [default: train].")
]
_Count = Annotated[
    int,
    typer.Option(
        "--count", "-n", min=1, help="Number of problems to read, if the source generates problems without end."
    ),
]
_Out = Annotated[
    Path, typer.Option("--out", "-o", help="File to write the problems to, as JSON Lines.", dir_okay=False)
]


@app.command(cls=CliCommand, epilog=example("rstar2 problems show gsm8k -n 2"))
def show(
    spec: _Spec,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="Number of problems to show.")] = 3,
    split: _Split = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print each problem as one line of JSON.")] = False,
) -> None:
    """Show the first problems of a source."""
    import dataclasses
    import itertools
    import json

    from rstar2_env.cli._options import source_of
    from rstar2_env.cli._tables import print_figures

    for problem in itertools.islice(source_of(spec, split, "train"), count):
        if as_json:
            say(json.dumps(dataclasses.asdict(problem), default=str))
            continue
        rows = {"question": problem.question, "answer": problem.answer, "source": problem.source}
        rows |= {name: str(value) for name, value in problem.meta.items()}
        print_figures(problem.id, rows)


@app.command(cls=CliCommand, epilog=example("rstar2 problems stats arithmetic:level=3"))
def stats(spec: _Spec, count: _Count = 1000, split: _Split = None, as_json: Json = False) -> None:
    """Print statistics: lengths, kinds of answers, fields, duplicate questions, contradictory answers."""
    import json

    from rstar2_env.cli._options import source_of
    from rstar2_env.cli._tables import print_figures
    from rstar2_env.problems import FiniteSource
    from rstar2_env.problems.stats import problem_stats

    source = source_of(spec, split, "train")
    figures = problem_stats(_first(source, count))
    if as_json:
        say(json.dumps({"name": source.name, "split": source.split, **figures}))
        return
    split_text = f" ({source.split})" if source.split else ""
    endless = "" if isinstance(source, FiniteSource) else f", the first {count} of an unlimited source"
    print_figures(
        f"{source.name}{split_text}{endless}",
        {name.replace("_", " "): _text(value) for name, value in figures.items()},
    )


@app.command(cls=CliCommand, epilog=example("rstar2 problems write gsm8k --out train.jsonl"))
def write(spec: _Spec, out: _Out, count: _Count = 1000, split: _Split = None, overwrite: Overwrite = False) -> None:
    """Write the problems of a source as JSON Lines; options in SPEC rename columns and select problems."""
    from rstar2_env.cli._options import source_of
    from rstar2_env.core.files.outputs import check_file
    from rstar2_env.problems.files.write import write_jsonl

    check_file(out, overwrite=overwrite, inputs=spec, lines=True)
    written = write_jsonl(_first(source_of(spec, split, "train"), count), out, overwrite=overwrite)
    say(f"{written} problems written to {out}", err=True)


@app.command(
    cls=CliCommand,
    epilog=example("rstar2 problems decontaminate --problems gsm8k --against math-500 aime24 --out clean.jsonl"),
)
def decontaminate(
    problems: Annotated[
        str, typer.Option(metavar="SPEC", help="Problems to filter, in the formats of `rstar2 problems show`.")
    ],
    against: Annotated[
        list[str],
        typer.Option(
            metavar="SPEC",
            help="Benchmark whose problems are compared with --problems. Repeat the option, or list several "
            "benchmarks after it.",
        ),
    ],
    out: _Out,
    more: Annotated[
        list[str] | None,
        typer.Argument(metavar="SPEC", help="Further benchmarks to compare with, besides those of --against."),
    ] = None,
    ngram: Annotated[
        int,
        typer.Option(
            min=1, help="Number of consecutive words that a problem must share with a benchmark to be removed."
        ),
    ] = 8,
    split: _Split = None,
    against_split: Annotated[str, typer.Option(help="Split of the benchmarks to compare with.")] = "test",
    report: Annotated[
        Path | None,
        typer.Option(
            help="File to write the removed problems to, each with the words that it shares with a benchmark, as "
            "JSON Lines.",
            dir_okay=False,
        ),
    ] = None,
    count: _Count = 1000,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Remove the problems that share a sequence of words with a benchmark, as in the rStar2-Agent paper."""
    import json

    from rstar2_env.cli._options import source_of
    from rstar2_env.cli._tables import print_figures
    from rstar2_env.core.files.outputs import check_file, replacing
    from rstar2_env.core.progress import progress
    from rstar2_env.problems import load_problems
    from rstar2_env.problems.decontaminate import Benchmarks, Decontaminated
    from rstar2_env.problems.files.write import write_jsonl

    inputs = [problems, *against, *(more or ())]
    check_file(out, overwrite=overwrite, inputs=inputs, lines=True)
    if report is not None:
        check_file(report, option="report", overwrite=overwrite, inputs=[*inputs, str(out)])
    with progress("loading the benchmarks", show=True):
        others = {spec: load_problems(spec, split=against_split) for spec in inputs[1:]}
    benchmarks = Benchmarks({source.name: _first(source, count) for source in others.values()}, ngram=ngram)
    found = Decontaminated()
    source = source_of(problems, split, "train")

    def clean() -> Iterable[Problem]:
        for problem in _first(source, count):
            overlap = benchmarks.overlap(problem)
            if overlap is None:
                yield problem
            else:
                found.dropped.append(overlap)

    found.kept = write_jsonl(clean(), out, overwrite=overwrite)
    if report is not None:
        with replacing(report) as partial:
            partial.write_text("".join(json.dumps(overlap.to_dict()) + "\n" for overlap in found.dropped), "utf-8")
    if as_json:
        say(json.dumps(found.to_dict()))
        return
    rows = {"kept": f"{found.kept}, written to {out}", "removed": f"{len(found.dropped)}"}
    rows |= {f"overlap with {name}": f"{number}" for name, number in found.by_benchmark().items()}
    for overlap in found.dropped[:10]:
        rows[overlap.problem_id] = f"overlaps {overlap.benchmark_id} of {overlap.benchmark}: “{overlap.words}”"
    if len(found.dropped) > 10:
        rows["…"] = f"{len(found.dropped) - 10} more (--report writes all)"
    print_figures(f"{source.name} without {ngram}-word overlaps", rows)


@app.command(cls=CliCommand, epilog=example("rstar2 problems sources gsm8k"))
def sources(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="Name of a public set, to show its splits, columns and known defects [default: list the sets].",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the named public sets, one line each, or show one."""
    import dataclasses
    import json
    import textwrap

    from rstar2_env.cli._tables import print_figures, print_list
    from rstar2_env.problems import FAMILIES, NAMED_SETS
    from rstar2_env.problems.catalog import named_set

    chosen = NAMED_SETS if name is None else {name: named_set(name)}
    if as_json:
        say(json.dumps({name: dataclasses.asdict(entry) for name, entry in chosen.items()}, default=str))
    elif name is None:
        print_list({name: f"{entry.title} ({entry.licence})" for name, entry in chosen.items()})
        say("\nrstar2 problems sources NAME shows one set: splits, columns, known defects.")
        say(textwrap.fill(f"Families of generated problems, which need no download: {', '.join(FAMILIES)}.", 80))
    else:
        entry = chosen[name]
        print_figures(
            name,
            {
                "title": entry.title,
                "hub": f"{entry.hub} ({entry.config})" if entry.config else entry.hub,
                "splits": ", ".join(f"{ours} {entry.problems.get(ours, '')}".strip() for ours in entry.splits),
                "columns": ", ".join(f"{ours}={theirs}" for ours, theirs in entry.columns.items()),
                "licence": entry.licence,
                "known defects": entry.doubts or "–",
            },
        )


def _first(source: ProblemSource, count: int) -> Iterator[Problem]:
    """Yield every problem, or ``count`` problems of an unlimited source, and show the progress."""
    import itertools

    from rstar2_env.core.progress import progress
    from rstar2_env.problems import FiniteSource

    total = len(source) if isinstance(source, FiniteSource) else count
    with progress(f"reading {source.name}", total=total, show=True) as report:
        for number, problem in enumerate(itertools.islice(source, total), 1):
            yield problem
            report(number, total)


def _text(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {number}" for name, number in value.items()) or "–"
    return str(value)
