"""Compare the arms of ``learning.py`` seed by seed: intervals of differences, the short table, the file of results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import mean, stdev
from typing import Any

Line = Mapping[str, Any]
BASE = "grpo_clip_higher"
FIFTH = 0.2
"""Target ratio of the share of failing calls to that of ``BASE``."""
T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
"""97.5 % points of Student's t distribution, for 1, 2, ... degrees of freedom (any statistical table)."""
SHORT = ("grpo_roc", "grpo_roc_clean")
"""The arms of the short table, in addition to ``BASE``."""
SHORT_FIGURES = {"success": "success (higher is better)", "failing": "failing calls (lower is better)"}
COMMAND = "python benchmarks/learning.py compare"
"""The command that makes the runs of the comparison."""


def interval(differences: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean of paired differences, and the bounds of its 95 % interval (Student's t).

    Args:
        differences: One difference per seed; the bounds are infinite for a single one.
    """
    middle = mean(differences)
    if len(differences) < 2:
        return middle, -math.inf, math.inf
    degrees = len(differences) - 1
    half = T[min(degrees, len(T)) - 1] * stdev(differences) / math.sqrt(len(differences))
    return middle, middle - half, middle + half


def compared(
    lines: Sequence[Line], faults: float, base: str = BASE, *, counts: str = "trained"
) -> list[dict[str, Any]]:
    """Compare each arm with the base, seed by seed.

    Args:
        lines: Lines of the comparison.
        faults: Share of injected faults; other lines are skipped.
        base: The arm that the others are compared with.
        counts: Unit of the budget of the runs that count; other lines are skipped.

    Returns:
        For each arm: ``arm``, its name; ``seeds``, its lines by seed; ``apart``, mean and interval of the differences
        from the base; ``share``, its failing calls divided by the base's. The last two use the seeds that both have.
    """
    by_arm: dict[str, dict[int, Line]] = {}
    for line in lines:
        if line["counts"] == counts and line["faults"] == faults:
            by_arm.setdefault(line["arm"], {})[line["seed"]] = line
    found = []
    for arm in sorted(by_arm, key=lambda name: (name != base, name)):
        own, other = by_arm[arm], by_arm.get(base, {})
        both = sorted(own.keys() & other.keys()) if arm != base else []
        names = ("success", "failing", "length_right")
        apart = {name: interval([own[seed][name] - other[seed][name] for seed in both]) for name in names if both}
        failing = [sum(one[seed]["failing"] for seed in both) for one in (own, other)]
        share = failing[0] / failing[1] if both and failing[1] else math.nan
        found.append({"arm": arm, "seeds": dict(sorted(own.items())), "apart": apart, "share": share})
    return found


def holds(row: Mapping[str, Any]) -> bool:
    """Return whether an arm reaches the aim: as much success, few failing calls, shorter correct answers.

    Few failing calls are at most a fifth of the base's. Success counts as equal if the upper bound of the interval of
    its difference is at least 0.
    """
    apart = row["apart"]
    return bool(apart and apart["success"][2] >= 0 and row["share"] <= FIFTH and apart["length_right"][0] < 0)


def short_table(lines: Sequence[Line], settings: Mapping[str, Any]) -> str:
    """Return the short comparison as Markdown: a table for each share of injected faults.

    A table has the means of ``BASE`` and of each of ``SHORT``, and below them the paired differences from ``BASE`` with
    their 95 % intervals.

    Args:
        lines: Lines of the comparison.
        settings: Their common settings.
    """
    seeds = {line["seed"] for line in lines if line["arm"] == BASE and line["counts"] == "trained"}
    text = [f"Means over {len(seeds)} seeds, on {settings['problems']:,} held-out problems (`make compare`)."]
    for faults in sorted({line["faults"] for line in lines if line["counts"] == "trained"}):
        rows = {row["arm"]: row for row in compared(lines, faults)}
        arms = [arm for arm in (BASE, *SHORT) if arm in rows]
        trained = f"{faults:.0%} of the training calls made to fail" if faults else "no injected faults"
        text += ["", f"| {trained} | " + " | ".join(f"`{arm}`" for arm in arms) + " |", "|---|" + "---:|" * len(arms)]
        for name, title in SHORT_FIGURES.items():
            means = [mean(line[name] for line in rows[arm]["seeds"].values()) for arm in arms]
            text.append(f"| {title} | " + " | ".join(f"{one:.3f}" for one in means) + " |")
            apart = [apart_text(rows[arm]["apart"].get(name), 3) for arm in arms]
            text.append(f"| difference from `{BASE}` (95 % interval) | " + " | ".join(apart) + " |")
    return "\n".join(text) + "\n"


def short_results(lines: Sequence[Line]) -> dict[str, Any]:
    """Return the file of results that other pages quote: ``figures`` by world and arm, as means over the seeds.

    Args:
        lines: Lines of all runs; those of the comparison count.
    """
    made = {
        key: "; ".join(sorted({line[key] for line in lines if line["counts"] == "trained" and key in line}))
        for key in ("commit", "load")
    }
    figures: dict[str, dict[str, dict[str, float]]] = {}
    for name, faults in (("indifferent", 0.0), ("indifferent_faults", 0.1)):
        rows = {row["arm"]: row["seeds"].values() for row in compared(lines, faults)}
        figures[name] = {
            arm: {figure: round(mean(line[figure] for line in rows[arm]), 6) for figure in SHORT_FIGURES}
            for arm in (BASE, *SHORT)
            if arm in rows
        }
    return {"command": COMMAND, **made, "figures": figures}


def apart_text(found: tuple[float, float, float] | None, digits: int) -> str:
    """Return a difference and its interval as text; empty without one, and without the interval of a single seed."""
    if found is None:
        return ""
    middle, low, high = found
    between = f" ({low:+.{digits}f} to {high:+.{digits}f})" if math.isfinite(low) else ""
    return f"{middle:+.{digits}f}{between}"
