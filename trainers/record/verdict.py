"""The result of a run in a sentence: better, worse or not evaluated; for the command line and the model card."""

from __future__ import annotations

import math
from collections.abc import Mapping

_FIGURE = "pass_rate"


def outcome(
    before: Mapping[str, float | None] | None, after: Mapping[str, float | None] | None, best_step: int | None
) -> str:
    """Describe the result of a run on held-out problems.

    Args:
        before: Held-out figures before the first step; ``None`` without evaluation.
        after: Held-out figures of the last evaluation.
        best_step: Step of the best weights; 0 for the initial weights.
    """
    if before is None or after is None or best_step is None:
        return "No held-out problems were evaluated, so no step is known to be the best; the weights are the last ones."
    first, last = before.get(_FIGURE), after.get(_FIGURE)
    if first is None or last is None or math.isnan(first) or math.isnan(last):
        return "No held-out episode counted, so the held-out pass rate is unknown."
    change = f"the held-out pass rate went from {first:.4f} to {last:.4f}"
    chance = ", within two standard errors" if _within_chance(before, after) else ""
    if last > first:
        return f"Better: {change}{chance}; the best weights are those of step {best_step}."
    kept = f"the best weights are those of step {best_step}"
    if best_step == 0:
        kept = "no evaluation was better than the first, so the best weights are the initial ones"
    if last < first:
        return f"Worse: {change}{chance}; {kept}."
    return f"No change: {change}; {kept}."


def _within_chance(before: Mapping[str, float | None], after: Mapping[str, float | None]) -> bool:
    errors = [figures.get(f"{_FIGURE}_se") for figures in (before, after)]
    known = [error for error in errors if error is not None and not math.isnan(error)]
    change = abs((after[_FIGURE] or 0.0) - (before[_FIGURE] or 0.0))
    return len(known) == 2 and change <= 2 * math.hypot(*known)
