"""A comparison as tables of text cells."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rstar2_env.evaluation.comparison.compare import ComparedFigure, Comparison
from rstar2_env.evaluation.figures.statistics import Interval
from rstar2_env.evaluation.figures.text import NOTHING

HEADINGS = ("", "base", "other", "diff", "95 %", "p")
CHANGED_HEADINGS = ("problem", "base", "other", "p", "q")


def figure_cells(comparison: Comparison) -> Iterator[tuple[str, ...]]:
    """Return a table row for each figure; ``HEADINGS`` names the columns."""
    for name, figure in comparison.figures.items():
        yield (
            name,
            number(figure.baseline.value),
            number(figure.other.value),
            number(figure.difference.value, signed=True),
            interval_text(figure.difference),
            p_text(figure),
        )


def changed_cells(comparison: Comparison, most: int) -> Iterator[tuple[str, ...]]:
    """Return a table row for each of the first ``most`` changed problems; ``CHANGED_HEADINGS`` names the columns."""
    for one in comparison.changed[:most]:
        shares = (f"{right}/{samples}" for right, samples in (one.baseline, one.other))
        yield (one.problem, *shares, f"{one.p_value:.2g}", f"{one.q_value:.2g}")


def sentences(comparison: Comparison) -> list[str]:
    """Return the facts that the tables do not show, one sentence each."""
    a, b = comparison.baseline, comparison.other
    found = [f"{comparison.problems} problems in common, of {a.problems} and {b.problems}."]
    if comparison.other_gold:
        found.append(
            f"{comparison.other_gold} further problems have different gold answers under the same id, and are left out."
        )
    for run in (a, b):
        if run.uncounted:
            found.append(
                f"{run.name}: {run.uncounted} of {run.episodes + run.uncounted} episodes are left out, "
                "because they were cancelled, the infrastructure failed, or a reply could not be played."
            )
    solved = comparison.solved
    found.append(
        f"Problems that were solved at least once, by both: {solved['both']}, by the baseline alone: "
        f"{solved['baseline_only']}, by the other alone: {solved['other_only']}, by neither: "
        f"{solved['neither']}."
    )
    if len(comparison.ks) > 1:
        found.append(
            (
                f"The curves of pass@k cross at k = {comparison.crossing}: there, the run that is ahead for "
                "small k falls behind."
            )
            if comparison.crossing
            else f"The curves of pass@k do not cross up to k = {comparison.ks[-1]}."
        )
    return found


def number(value: float, *, signed: bool = False) -> str:
    """Format a figure with three decimal places; a dash for NaN."""
    if not math.isfinite(value):
        return NOTHING
    return f"{value:+.3f}" if signed else f"{value:.3f}"


def interval_text(interval: Interval) -> str:
    """Format the two ends of an interval of differences; a dash if there is no interval, or no difference at all."""
    if not math.isfinite(interval.low) or interval.low == interval.high == 0:
        return NOTHING  # resamples of differences that are all 0 say nothing about the uncertainty
    return f"{interval.low:+.3f}, {interval.high:+.3f}"


def p_text(figure: ComparedFigure) -> str:
    """Format the p-value of a figure; a dash if the figure has no interval."""
    return NOTHING if not math.isfinite(figure.difference.low) else f"{figure.p_value:.2g}"
