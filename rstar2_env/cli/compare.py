"""``rstar2 compare``: compare two or more evaluations, paired by problem."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rstar2_env.cli._options import Json, Overwrite
from rstar2_env.cli._printing import say

if TYPE_CHECKING:
    from rstar2_env.evaluation.comparison.compare import Comparison


def compare_command(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN",
            help="Evaluations to compare: folders of runs or of suites, or files of evaluations. The first is "
            "the baseline. RUN@STEP selects the evaluation at a training step [default: the last].",
        ),
    ],
    k: Annotated[
        str | None,
        typer.Option(
            metavar="K,K,...",
            help="Numbers of samples k for pass@k and maj@k, separated by commas [default: powers of two up "
            "to the number of samples, and that number].",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.png",
            help="Also write a plot to this file: the pass@k curves, and the change in each problem's success.",
        ),
    ] = None,
    problems: Annotated[int, typer.Option(min=0, help="Maximum number of problems with changed results to list.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random resamples.")] = 0,
    resamples: Annotated[
        int, typer.Option(min=1, help="Number of random resamples for confidence intervals and tests.")
    ] = 2000,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Compare each evaluation with the first, on the problems that occur in both evaluations.

    Differences have bootstrap intervals over problems and p-values from a sign-flip test. Changed problems are listed
    with p-values from Fisher's exact test, and with q-values. A problem's q-value is the expected share of false
    findings if all problems from the top of the list down to this one count as changed.
    """
    import json

    from rstar2_env.cli._options import whole_numbers
    from rstar2_env.core.errors import ConfigurationError
    from rstar2_env.core.files.outputs import check_file
    from rstar2_env.core.progress import progress
    from rstar2_env.evaluation.comparison.compare import compare
    from rstar2_env.evaluation.figures.plot import picture_format
    from rstar2_env.evaluation.stored.runs import find_sets

    ks = None if k is None else whole_numbers(k, "--k")
    sets = [find_sets(run) for run in runs]
    names = [name for name in sets[0] if all(name in each for each in sets)]
    if not names:
        listed = "; ".join(
            f"{run}: {', '.join(filter(None, each)) or 'one run'}" for run, each in zip(runs, sets, strict=True)
        )
        raise ConfigurationError(
            f"The suites have no set of problems with the same name; their sets are: {listed}. Compare "
            "suites that share a set, and compare runs only with runs."
        )
    files = {name: report and (report.with_stem(f"{report.stem}-{name}") if name else report) for name in names}
    for written in filter(None, files.values()):
        check_file(written, option="report", overwrite=overwrite, inputs=runs)
        picture_format(written)
    found: list[Comparison] = []
    pictures = []
    for name in names:
        with progress("comparing", show=True):
            comparisons = compare([each[name] for each in sets], ks=ks, seed=seed, resamples=resamples)
        found += comparisons
        if file := files[name]:
            from rstar2_env.evaluation.comparison.picture import draw

            pictures.append(draw(comparisons, file, overwrite=overwrite))
    if as_json:
        say(json.dumps([comparison.record() for comparison in found]))
        return
    for comparison in found:
        show_comparison(comparison, problems)
    for picture in pictures:
        say(f"picture: {picture}")


def show_comparison(comparison: Comparison, problems: int) -> None:
    """Print a comparison of evaluations.

    Args:
        comparison: A run compared with the baseline.
        problems: Maximum number of changed problems to list.
    """
    from rstar2_env.cli._tables import print_table, print_text
    from rstar2_env.evaluation.comparison.compare import (
        CHANGED_HEADINGS,
        HEADINGS,
        changed_cells,
        figure_cells,
        sentences,
    )

    print_table(HEADINGS, figure_cells(comparison), title=comparison.title)
    for sentence in sentences(comparison):
        print_text(sentence)
    if comparison.changed and problems:
        shown = min(problems, len(comparison.changed))
        print_table(
            CHANGED_HEADINGS,
            changed_cells(comparison, problems),
            title=f"{shown} of the {len(comparison.changed)} problems whose results changed: correct samples / all "
            "samples",
        )
