"""The figures of an evaluation as text: rows of a table, with names and units that need no explanation.

Covered: what ``print(result)`` and ``rstar2 eval`` show. Not covered: how the figures are worked out
(``rstar2_env.evaluation.summary``).
"""

from __future__ import annotations

from collections.abc import Mapping

from rstar2_env.evaluation.summary import Estimate, Summary

NOTHING = "–"
"""Stands where there is no figure."""


def summary_rows(summary: Summary) -> dict[str, str]:
    """The figures by name, in the order in which they are shown."""
    rows = {
        "episodes": f"{summary.episodes}",
        "unavailable": f"{summary.unavailable}",
        "pass rate": estimate_text(summary.pass_rate, percent=True),
        "mean reward": estimate_text(summary.reward),
        "tool errors, of all calls": estimate_text(summary.tool_error_share, percent=True),
        "tool errors in correct episodes": estimate_text(summary.tool_error_share_correct, percent=True),
        "calls by status": tally_text(summary.statuses),
        "calls an episode": estimate_text(summary.calls),
        "turns": estimate_text(summary.turns),
        "broken answer formats": estimate_text(summary.broken_formats, percent=True),
        "ends": tally_text(summary.ends),
    }
    if summary.injected:
        rows["injected faults"] = tally_text(summary.injected)
    return rows


def estimate_text(estimate: Estimate, *, percent: bool = False) -> str:
    """A value with its standard error: "0.973 ± 0.004", or in percent; "–" when nothing counts."""
    if estimate.value is None:
        return NOTHING
    scale, unit = (100, " %") if percent else (1, "")
    text = f"{estimate.value * scale:.{2 if percent else 3}f}"
    if estimate.error is not None:
        text += f" ± {estimate.error * scale:.{2 if percent else 3}f}"
    return text + unit


def tally_text(tally: Mapping[str, int]) -> str:
    """Counts by name, the largest first."""
    return ", ".join(f"{name} {count}" for name, count in sorted(tally.items(), key=lambda item: -item[1])) or NOTHING
