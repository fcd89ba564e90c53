"""``rstar2 compare``: two or more evaluations against each other, paired by problem."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rstar2_env.cli._options import Json

if TYPE_CHECKING:
    from rstar2_env.evaluation.comparison.compare import Comparison


def compare_command(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN RUN...",
            help="Folders of runs or of suites, or files of evaluations, the baseline first; RUN@STEP: after that step "
            "of training [default: the last].",
        ),
    ],
    k: Annotated[
        str | None,
        typer.Option(metavar="K,K,...", help="The k of pass@k and maj@k [default: powers of two, and all samples]."),
    ] = None,
    png: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the curves of pass@k and the problems' differences.")
    ] = None,
    problems: Annotated[int, typer.Option(min=0, help="Most problems to list that changed.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draws of intervals and tests.")] = 0,
    resamples: Annotated[int, typer.Option(min=1, help="Draws of intervals and tests.")] = 2000,
    as_json: Json = False,
) -> None:
    """Compare evaluations with the first of them, over the problems that both played.

    Differences come with bootstrap intervals over problems and p-values of a sign-flip test; problems that changed,
    with those of Fisher's exact test, and q: the share of false findings to expect down to that line.
    """
    import json

    from rstar2_env.core.errors import ConfigurationError
    from rstar2_env.evaluation.comparison.compare import compare
    from rstar2_env.evaluation.stored.runs import find_sets

    try:
        ks = None if k is None else [int(part) for part in k.split(",")]
    except ValueError:
        raise ConfigurationError(f"--k must be whole numbers with commas between them (1,8,16), not {k!r}.") from None
    sets = [find_sets(run) for run in runs]
    names = [name for name in sets[0] if all(name in each for each in sets)]
    if not names:
        told = "; ".join(
            f"{run}: {', '.join(filter(None, each)) or 'one run'}" for run, each in zip(runs, sets, strict=True)
        )
        raise ConfigurationError(
            f"These have no set in common ({told}). Compare suites with suites, and runs with runs."
        )
    found: list[Comparison] = []
    pictures = []
    for name in names:
        of_set = compare([each[name] for each in sets], ks=ks, seed=seed, resamples=resamples)
        found += of_set
        if png is not None:
            from rstar2_env.evaluation.comparison.picture import draw

            pictures.append(draw(of_set, png.with_stem(f"{png.stem}-{name}") if name else png))
    if as_json:
        typer.echo(json.dumps([one.record() for one in found]))
        return
    for one in found:
        show_comparison(one, problems)
    for picture in pictures:
        typer.echo(f"picture: {picture}")


def show_comparison(comparison: Comparison, problems: int) -> None:
    """Print a comparison.

    Args:
        comparison: The comparison.
        problems: Most problems to list that changed.
    """
    from rstar2_env.cli._tables import print_table, print_text
    from rstar2_env.evaluation.comparison.text import (
        CHANGED_HEADINGS,
        HEADINGS,
        changed_cells,
        figure_cells,
        sentences,
    )

    title = f"{comparison.other.name} against {comparison.baseline.name} (baseline)"
    print_table(HEADINGS, figure_cells(comparison), title=title)
    for sentence in sentences(comparison):
        print_text(sentence)
    if comparison.changed and problems:
        shown = min(problems, len(comparison.changed))
        print_table(
            CHANGED_HEADINGS,
            changed_cells(comparison, problems),
            title=f"{shown} of the {len(comparison.changed)} problems that changed: right samples of all",
        )
