"""Finds spells: consecutive steps at which a condition on a figure holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from rstar2_env.diagnosis.record import EpisodeDigest, FigurePoint, RunRecord, StepData

LEAST = 3
"""Number of consecutive steps for which a condition must hold: a single step has few groups and is noisy, but a fault
should be reported soon."""


@dataclass(frozen=True, slots=True)
class Spell:
    """Consecutive steps at which a condition on a figure held.

    Attributes:
        since: First step of the spell.
        until: Last step of the spell; ``None`` if the spell lasts to the last step of the figure.
        values: The values of the figure at the steps of the spell.
    """

    since: int
    until: int | None
    values: Sequence[float]

    @property
    def mean(self) -> float:
        """Mean of the values in the spell."""
        return fmean(self.values)

    @property
    def last(self) -> float:
        """Last of the values in the spell."""
        return self.values[-1]


def spell(points: Sequence[FigurePoint], holds: Callable[[float], bool], least: int = LEAST) -> Spell | None:
    """Return the latest spell with at least ``least`` points; ``None`` if there is none.

    Args:
        points: Steps with their values, ascending.
        holds: Function that returns whether the condition holds for a value.
        least: Smallest number of points that count as a spell.
    """
    stop = len(points)
    while stop >= least:
        while stop and not holds(points[stop - 1][1]):
            stop -= 1
        start = stop
        while start and holds(points[start - 1][1]):
            start -= 1
        if stop - start >= least:
            until = None if stop == len(points) else points[stop - 1][0]
            return Spell(points[start][0], until, [value for _, value in points[start:stop]])
        stop = start
    return None


def rolling(points: Sequence[FigurePoint], window: int) -> list[FigurePoint]:
    """Return the mean of every ``window`` consecutive values, each at the step of the last value."""
    return [
        (points[stop - 1][0], fmean(value for _, value in points[stop - window : stop]))
        for stop in range(window, len(points) + 1)
    ]


def start_level(points: Sequence[FigurePoint], first: int = 5) -> float | None:
    """Return a figure's level at the start: the median of its ``first`` values; ``None`` if there are fewer values."""
    return median(value for _, value in points[:first]) if len(points) >= first else None


def shares(
    run: RunRecord,
    name: str,
    chosen: Callable[[EpisodeDigest], bool],
    of: Callable[[EpisodeDigest], bool] = lambda episode: episode.available,
) -> list[FigurePoint]:
    """Return, for each step, the share of episodes for which a condition holds.

    Args:
        run: The record of a run.
        name: Name of the share, unique among the checks (``StepData.once``).
        chosen: Function that returns whether the condition holds for an episode.
        of: Function that returns whether an episode is included; by default, whether it is ``available``.
    """

    def share(step: StepData) -> float | None:
        counted = [episode for episode in step.episodes if of(episode)]
        return sum(map(chosen, counted)) / len(counted) if counted else None

    return each_step(run, f"share/{name}", share)


def each_step(run: RunRecord, name: str, reduce: Callable[[StepData], float | None]) -> list[FigurePoint]:
    """Return a value for each step, computed by a function; steps without a value are left out.

    Args:
        run: The record of a run.
        name: Name of the result, unique among the checks (``StepData.once``).
        reduce: Function that returns the value of a step, or ``None``; it is called once for each step.
    """
    found = ((step.number, step.once(name, reduce)) for step in run.steps)
    return [(number, value) for number, value in found if value is not None]


def least_of(run: RunRecord) -> int:
    """Return the number of consecutive steps that a finding needs: 1 for an evaluation, which has only one step."""
    return 1 if run.kind == "evaluation" else LEAST
