"""Finds spells, which are steps in a row at which a condition on a metric holds, and trends of a metric."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

from rstar2_env.diagnosis.record import EpisodeDigest, FigurePoint, RunRecord, StepData

LEAST = 3
"""Number of steps that a spell must cover: a single step has few groups and is noisy, but a fault should be reported
soon."""


@dataclass(frozen=True, slots=True)
class Spell:
    """Steps in a row at which a condition on a metric held.

    Attributes:
        since: First step of the spell.
        until: Last step of the spell; ``None`` if the spell lasts to the last step that has a value.
        values: The values of the metric from the first to the last step of the spell.
        task: The only task whose episodes the metric covers; empty if the metric covers all episodes.
    """

    since: int
    until: int | None
    values: Sequence[float]
    task: str = ""

    @property
    def of_task(self) -> str:
        """Return " of the task NAME"; empty if the metric covers all episodes."""
        return f" of the task {self.task!r}" if self.task else ""

    @property
    def in_most(self) -> bool:
        """Whether the metric, a share of episodes, covers all tasks and has a mean above one half in this spell."""
        return not self.task and self.mean > 0.5

    @property
    def mean(self) -> float:
        """Mean of the values in the spell."""
        return fmean(self.values)

    @property
    def last(self) -> float:
        """Last of the values in the spell."""
        return self.values[-1]


def spell(points: Sequence[FigurePoint], holds: Callable[[float], bool], least: int = LEAST) -> Spell | None:
    """Return the latest spell that covers at least ``least`` points; ``None`` if there is none.

    A spell begins and ends with points at which the condition holds. In between, single points may fail it, because a
    noisy metric crosses a threshold now and then, and a fault may act at every second step. The condition must hold
    for the mean of the spell as well, so that values just beyond a threshold do not form a spell with single values far
    below or above it.

    Args:
        points: Steps with their values, ascending.
        holds: Function that returns whether the condition holds for a value.
        least: Smallest number of points that count as a spell.
    """
    met = [holds(value) for _, value in points]
    stop = len(points)
    while stop >= least:
        while stop and not met[stop - 1]:
            stop -= 1
        start = _begin(points, met, stop, holds)
        if stop and stop - start >= least:
            until = None if stop == len(points) else points[stop - 1][0]
            return Spell(points[start][0], until, [value for _, value in points[start:stop]])
        stop -= 1
    return None


def _begin(points: Sequence[FigurePoint], met: Sequence[bool], stop: int, holds: Callable[[float], bool]) -> int:
    """Return the index in ``points`` of the first point of the spell whose last point is ``points[stop - 1]``.

    Args:
        points: Steps with their values, ascending.
        met: Whether the condition holds at each point.
        stop: Index after the last point; returned if the condition does not hold before it.
        holds: Function that returns whether the condition holds for a value.
    """
    start = at = stop
    total = 0.0
    while at and start - at <= LEAST and (met[at - 1] or (at >= 2 and met[at - 2])):
        at -= 1
        total += points[at][1]
        if met[at] and (start - at == 1 or holds(total / (stop - at))):
            start = at
    return start


def rolling(points: Sequence[FigurePoint], window: int) -> list[FigurePoint]:
    """Return the mean of every ``window`` consecutive values, each at the step of the last value."""
    return [
        (points[stop - 1][0], fmean(value for _, value in points[stop - window : stop]))
        for stop in range(window, len(points) + 1)
    ]


def lasting(
    points: Sequence[FigurePoint], bound: float, low: float, least: int = LEAST, window: int = 5
) -> Spell | None:
    """Return the latest spell in which a share is above ``bound``, or its trimmed mean is above ``low``.

    The trimmed mean of ``window`` points leaves out the highest value. It has less noise than single steps, so its
    bound can be lower, and a single step with a high share does not exceed it.

    Args:
        points: Steps with their shares, ascending.
        bound: Bound of the share of a step.
        low: Bound of the trimmed mean.
        least: Smallest number of points that count as a spell of the share.
        window: Number of points of a trimmed mean.
    """
    found = spell(points, lambda share: share > bound, least)
    if found is not None or least == 1:
        return found
    values = [value for _, value in points]
    trimmed = [(at, _trimmed(values[at : at + window])) for at in range(len(points) - window + 1)]
    found = spell(trimmed, lambda share: share > low, 1)
    if found is None:
        return None
    last = len(points) - 1 if found.until is None else found.until + window - 1
    until = None if found.until is None else points[last][0]
    return Spell(points[found.since][0], until, values[found.since : last + 1])


def _trimmed(values: Sequence[float]) -> float:
    return (sum(values) - max(values)) / (len(values) - 1)


def start_level(points: Sequence[FigurePoint], first: int = LEAST) -> float | None:
    """Return a metric's level at the start: the median of its ``first`` values; ``None`` if there are fewer values."""
    return median(value for _, value in points[:first]) if len(points) >= first else None


def rank_trend(values: Sequence[float]) -> float:
    """Return the Mann-Kendall statistic of a trend: positive if later values tend to be larger.

    It is the number of rising pairs minus the number of falling pairs, divided by the standard deviation that this
    difference has without a trend. Stairs, ramps and noisy ramps have a large value; noise around a level has about 0.
    """
    number = len(values)
    if number < 2:
        return 0.0
    rises = sum(
        (values[later] > values[earlier]) - (values[later] < values[earlier])
        for later in range(number)
        for earlier in range(later)
    )
    return float(rises / (number * (number - 1) * (2 * number + 5) / 18) ** 0.5)


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


_TASK_EPISODES = 24
"""Minimum number of a task's latest episodes over which the share that meets a condition is computed. Two groups of 8
would be too few: in them, a single hard problem can explain a large share."""


def frequent(
    run: RunRecord,
    name: str,
    chosen: Callable[[EpisodeDigest], bool],
    bounds: tuple[float, float, float],
    *,
    of: Callable[[EpisodeDigest], bool] = lambda episode: episode.available,
    otherwise: str = "",
) -> Spell | None:
    """Return the spell in which a condition holds for too many episodes, or for too many episodes of a task.

    A fault of one task (``EpisodeDigest.task``) among many is a small share of all episodes; the share of a task is
    computed over its latest episodes, from at least three steps.

    Args:
        run: The record of a run.
        name: Name of the share, unique among the checks (``StepData.once``).
        chosen: Function that returns whether the condition holds for an episode.
        bounds: Three bounds: of the share of a step, of the trimmed mean of this share (``lasting``), and of the share
            of a task.
        of: Function that returns whether an episode is included; by default, whether it is ``available``.
        otherwise: Name of a metric that is used as the share of each step if the run has no episodes.
    """
    points = shares(run, name, chosen, of) or (run.series(otherwise) if otherwise else [])
    found = lasting(points, bounds[0], bounds[1], least_of(run))
    if found is not None:
        return found

    def counts(step: StepData) -> dict[str, tuple[int, int]]:
        counted: dict[str, tuple[int, int]] = {}
        for one in step.episodes:
            if of(one):
                hits, total = counted.get(one.task, (0, 0))
                counted[one.task] = (hits + chosen(one), total + 1)
        return counted

    tasks: dict[str, list[tuple[int, int, int]]] = {}
    for step in run.steps:
        for task, (hits, total) in step.once(f"tasks/{name}", counts).items():
            tasks.setdefault(task, []).append((step.number, hits, total))
    for task in sorted(tasks) if len(tasks) > 1 else ():
        found = spell(_latest(tasks[task]), lambda share: share > bounds[2], 1)
        if found is not None:
            return replace(found, task=task)
    return None


def _latest(steps: Sequence[tuple[int, int, int]]) -> list[FigurePoint]:
    """Return, for each step, the share of episodes that meet a condition, over this step and the steps before it.

    The steps before it are as few as possible, so that the share covers at least ``LEAST`` steps and
    ``_TASK_EPISODES`` episodes. A step is left out if the steps up to it do not suffice.

    Args:
        steps: For each step, its number, the number of episodes that meet the condition, and the number of episodes.
    """
    found: list[FigurePoint] = []
    start = hits = total = 0
    for at, (number, own_hits, own_total) in enumerate(steps):
        hits, total = hits + own_hits, total + own_total
        while at - start >= LEAST and total - steps[start][2] >= _TASK_EPISODES:
            hits, total, start = hits - steps[start][1], total - steps[start][2], start + 1
        if total >= _TASK_EPISODES and at - start + 1 >= LEAST:
            found.append((number, hits / total))
    return found


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
