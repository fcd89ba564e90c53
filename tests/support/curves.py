"""Runs beside each other: their curves, and whether they played the same episodes, token by token."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rstar2_env.core.run_folder import Run

CURVES = ("rollout/reward", "rollout/tokens", "loss", "grad_norm")
"""Mean reward, mean tokens of an episode, loss and norm of the gradient of every step."""
CLOSE = 1e-4
"""What rounding in float32 may take a point of a curve away, relative to the largest of its curve."""


def curve(run: Run, name: str) -> list[float]:
    """A figure of every step; each must have it."""
    points = [float(line[name]) for line in run.metrics()]
    assert not any(map(math.isnan, points)), (name, points)
    return points


def apart(run: Run, other: Run) -> float:
    """The largest distance of two points of the curves of two runs, relative to the largest of the second's curve."""
    return max(
        abs(one - wanted) / _scale([curve(other, name)])
        for name in CURVES
        for one, wanted in zip(curve(run, name), curve(other, name), strict=True)
    )


def outside(run: Run, several: Sequence[Run]) -> dict[str, list[int]]:
    """The steps in which a run's curves leave the least and the largest of others by more than ``CLOSE``, by figure."""
    found = {}
    for name in CURVES:
        curves = [curve(one, name) for one in several]
        slack = CLOSE * _scale(curves)
        bands = zip(curve(run, name), *curves, strict=True)
        steps = [step for step, (one, *seeds) in enumerate(bands, 1) if not within(one, seeds, slack)]
        if steps:
            found[name] = steps
    return found


def within(value: float, others: Sequence[float], slack: float) -> bool:
    """Whether a number is between the least and the largest of others."""
    return min(others) - slack <= value <= max(others) + slack


def differing(run: Run, other: Run) -> list[tuple[int, int, int]]:
    """Step, group and member of every episode that is not the same in two runs.

    The same are what was said and done, and what was selected; of those that trained, every token too. Runs must have
    kept their tokens (``run.keep_tokens``).
    """
    found = []
    for step in sorted({*run.steps, *other.steps}):
        one, wanted = _played(run, step), _played(other, step)
        found += [(step, *place) for place in sorted({*one, *wanted}) if one.get(place) != wanted.get(place)]
    return found


def _played(run: Run, step: int) -> dict[tuple[int, int], Any]:
    trained = {(row.group, row.member): (row.prompt_ids, row.completion_ids, row.mask) for row in run.tokens(step)}
    return {
        (entry.episode.group, entry.member): (
            entry.episode.problem_id,
            entry.episode.messages,
            [(turn.start, turn.stop, turn.statuses) for turn in entry.episode.steps],
            entry.episode.reward,
            entry.episode.end,
            entry.kept,
            trained.get((entry.episode.group, entry.member)),
        )
        for entry in run.episodes(step)
    }


def _scale(curves: Sequence[Sequence[float]]) -> float:
    return max(1e-9, *(abs(point) for points in curves for point in points))
