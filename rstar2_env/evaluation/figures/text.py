"""The figures of an evaluation as text: rows of a table, with names and units that need no explanation.

Covered: the output of ``print(result)`` and ``rstar2 eval``. Not covered: how the figures are computed
(``rstar2_env.evaluation.figures.summary``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from rstar2_env.core.episode_metrics import FIGURES
from rstar2_env.evaluation.figures.boundary import SETS, Boundary
from rstar2_env.evaluation.figures.statistics import Interval
from rstar2_env.evaluation.figures.summary import Estimate, Summary

_USAGE = {"prompt_tokens": "tokens read", "completion_tokens": "tokens written", "cost": "cost"}

NOTHING = "–"
"""Shown in place of a missing figure."""


def summary_rows(summary: Summary) -> dict[str, str]:
    """Return each figure as text, keyed by its label, in the order of display."""
    after = {
        "reward": {f"  {name}": estimate_text(estimate) for name, estimate in summary.rewards.items()},
        "tool_error_share_correct": {
            "calls by status": tally_text(summary.statuses),
            "  in correct episodes": tally_text(summary.statuses_correct),
        },
        "repetition": {"ends": tally_text(summary.ends), **_usage_rows(summary)},
    }
    rows = {"episodes": f"{summary.episodes}", "unavailable": f"{summary.unavailable}"}
    for name, figure in FIGURES.items():
        estimate = summary.estimate(name)
        if figure.label and (name != "tokens" or estimate.value is not None):
            rows[figure.label] = estimate_text(estimate, percent=figure.percent)
        rows |= after.get(name, {})
    if summary.injected:
        rows["injected faults"] = tally_text(summary.injected)
    return rows


def _usage_rows(summary: Summary) -> dict[str, str]:
    rows = {"replies of the model that could not be played": f"{summary.unusable}"} if summary.unusable else {}
    for name, label in _USAGE.items():
        if name in summary.usage:
            rows[label] = f"{summary.usage[name]:,.0f}" if name != "cost" else f"{summary.usage[name]:.4g}"
    return rows


def estimate_text(estimate: Estimate, *, percent: bool = False) -> str:
    """Format a mean with its standard error, "0.973 ± 0.004"; with ``percent``, a share: "41.25 % [33.10, 49.80]".

    The brackets contain the share's interval. "–" stands for no data. A standard error of 0, as for equal values, is
    not shown.
    """
    if estimate.value is None:
        return NOTHING
    if percent:
        return interval_text(estimate.share_interval() or Interval(estimate.value, math.nan, math.nan))
    return f"{estimate.value:.3f}" + (f" ± {estimate.error:.3f}" if estimate.error else "")


def interval_text(interval: Interval) -> str:
    """Format a share with its interval: "41.25 % [33.10, 49.80]"; "–" without data."""
    if not math.isfinite(interval.value):
        return NOTHING
    text = f"{100 * interval.value:.2f} %"
    return f"{text} [{100 * interval.low:.2f}, {100 * interval.high:.2f}]" if math.isfinite(interval.low) else text


def boundary_text(boundary: Boundary) -> dict[str, str]:
    """Return a table row for each set of problems in a ``Boundary``: the set's name, mapped to its size and share."""
    shares = boundary.shares()
    rows = {
        name: f"{len(getattr(boundary, name))} of {boundary.problems} problems ({100 * shares[name]:.2f} %)"
        for name in (*SETS, "consolidation")
    }
    before, after = boundary.samples
    if before != after:
        rows["samples of a problem"] = (
            f"{before:g} in the baseline, {after:g} here: "
            "the evaluation with more samples solves more problems by chance"
        )
    return rows


def tally_text(tally: Mapping[str, int]) -> str:
    """Format counts by name, the largest first."""
    return ", ".join(f"{name} {count}" for name, count in sorted(tally.items(), key=lambda item: -item[1])) or NOTHING
