"""``rstar2 demo``: train a tiny model to use the Python tool, on a CPU."""

from __future__ import annotations

import math
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rstar2_env.cli._printing import say
from rstar2_env.cli._trainers import import_trainers

if TYPE_CHECKING:
    from collections.abc import Mapping


def demo_command(
    trainer: Annotated[
        list[str] | None,
        typer.Option(
            help="Trainer that trains the model. Repeat the option to compare several trainers [default: grpo_roc]."
        ),
    ] = None,
    output_dir: Annotated[Path, typer.Option("--out", "-o", help="Folder to write the demonstration to.")] = Path(
        "runs/demo"
    ),
    steps: Annotated[int, typer.Option(min=1, help="Number of training steps of each trainer.")] = 140,
    sft_steps: Annotated[
        int,
        typer.Option(
            min=1,
            help="Number of training steps of the cold start (the training on example traces before reinforcement "
            "learning).",
        ),
    ] = 800,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random choice.")] = 0,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Number of CPU threads that torch uses [default: one per core].")
    ] = None,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite",
            "--fresh",
            help="Delete the demonstration that is in --out, and start again; without this option, the "
            "demonstration continues.",
        ),
    ] = False,
) -> None:
    """Make a tiny model, cold-start it on tool-use traces, train it, and compare before and after.

    At the end the cold-start model and each trained model play the same held-out problems, 16 times each, and the
    results are compared.

    Everything runs on the CPU of this machine, without downloads. Finished stages are skipped, and an interrupted
    stage is resumed.
    """
    names = trainer or ["grpo_roc"]
    trainers: Any = import_trainers()
    for name in names:
        trainers.TRAINERS.get(name)
    result = trainers.demo(
        overwrite=overwrite,
        trainers=tuple(names),
        output_dir=str(output_dir),
        steps=steps,
        sft_steps=sft_steps,
        seed=seed,
        threads=threads,
    )
    _show(result)


def _show(result: Any) -> None:
    from rstar2_env.cli._tables import print_table, print_text
    from rstar2_env.cli.compare import show_comparison

    before = next(iter(result.runs.values())).before
    columns = {"cold start": before, **{name: run.after for name, run in result.runs.items()}}
    print_table(
        ("", *columns),
        [(label, *(figure_text(figures, figure) for figures in columns.values())) for figure, label in FIGURES.items()],
        title="held-out problems, before and after",
    )
    for comparison in result.comparisons:
        show_comparison(comparison, problems=3)
    for stage, seconds in result.seconds.items():
        say(f"{stage}: {seconds:.0f} s")
    say(f"pictures: {result.picture}, {result.comparison_picture}")
    for name, run in result.runs.items():
        words = (run.outcome,) if run.verdict is None else run.verdict.sentences
        print_text(f"{name}: {' '.join(words)}")
    folders = shlex.join(str(run.output_dir) for run in result.runs.values())
    print_text(f"To see the episodes: rstar2 view {folders}")


def figure_text(figures: Mapping[str, float], name: str) -> str:
    """Format the metric ``name`` for a table; ``pass_rate`` gets a confidence interval, NaN becomes a dash."""
    from rstar2_env.evaluation.figures.statistics import effective_trials, wilson

    value = figures[name]
    if math.isnan(value):
        return "–"
    text = f"{value:.{2 if name == 'turns' else 3}f}"
    count, error = figures.get("episodes") or 0, figures.get("pass_rate_se") or 0.0
    if name != "pass_rate" or not count:
        return text
    interval = wilson(value, effective_trials(value, 0.0 if math.isnan(error) else error, count, count))
    return f"{text} [{interval.low:.3f}, {interval.high:.3f}]"


FIGURES = {
    "pass_rate": "pass@1",
    "tool_error_share": "tool errors, all episodes",
    "tool_error_share_correct": "tool errors, correct episodes",
    "broken_format": "broken formats",
    "turns": "mean turns",
}
"""Label of each metric in tables that compare a model before and after training."""
