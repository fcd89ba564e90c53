"""Find spells: consecutive steps at which a condition holds. Shared by the checks that watch a figure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from rstar2_env.diagnosis.record import EpisodeDigest, FigurePoint, RunRecord, StepData

LEAST = 3
"""Number of consecutive steps after which a condition counts: one step is a few groups and noisy, and a fault should be
named within three steps."""


@dataclass(frozen=True, slots=True)
class Spell:
    """Consecutive points at which a condition held.

    Attributes:
        since: First step of the spell.
        until: Last step; ``None`` if the spell lasts to the last point.
        values: The values at its points.
    """

    since: int
    until: int | None
    values: Sequence[float]

    @property
    def mean(self) -> float:
        """Mean of the values."""
        return fmean(self.values)

    @property
    def last(self) -> float:
        """Last of the values."""
        return self.values[-1]


def spell(points: Sequence[FigurePoint], holds: Callable[[float], bool], least: int = LEAST) -> Spell | None:
    """Return the latest spell with at least ``least`` points.

    Args:
        points: Steps with their values, ascending.
        holds: The condition on a value.
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
    """Return the mean of each ``window`` consecutive values, at the step of the last of them."""
    return [
        (points[stop - 1][0], fmean(value for _, value in points[stop - window : stop]))
        for stop in range(window, len(points) + 1)
    ]


def start_level(points: Sequence[FigurePoint], first: int = 5) -> float | None:
    """Return the median of the first values, the level at which a figure started; ``None`` if there are fewer."""
    return median(value for _, value in points[:first]) if len(points) >= first else None


def shares(
    run: RunRecord,
    name: str,
    chosen: Callable[[EpisodeDigest], bool],
    of: Callable[[EpisodeDigest], bool] = lambda episode: episode.available,
) -> list[FigurePoint]:
    """Return the share of the episodes of each step for which a condition holds.

    Args:
        run: The run.
        name: Name of the share, unique among the checks (``StepData.once``).
        chosen: The condition on an episode.
        of: Which episodes are counted; by default, those that count.
    """

    def share(step: StepData) -> float | None:
        counted = [episode for episode in step.episodes if of(episode)]
        return sum(map(chosen, counted)) / len(counted) if counted else None

    return each_step(run, f"share/{name}", share)


def each_step(run: RunRecord, name: str, reduce: Callable[[StepData], float | None]) -> list[FigurePoint]:
    """Return what a function makes of each step, without the steps of which it makes ``None``.

    Args:
        run: The run.
        name: Name of the result, unique among the checks (``StepData.once``).
        reduce: The function; it is called once for each step.
    """
    found = ((step.number, step.once(name, reduce)) for step in run.steps)
    return [(number, value) for number, value in found if value is not None]


def least_of(run: RunRecord) -> int:
    """Return the number of consecutive steps that a finding needs: 1 for an evaluation, which has only one step."""
    return 1 if run.kind == "evaluation" else LEAST
