"""Reports the remaining time of all stages while a pipeline runs.

The time of a stage is estimated from finished stages of the same kind in the pipeline's folder, in proportion to the
work (episodes to play, rows to train on). If no such stage has finished, the estimate of ``rstar2 plan`` is used.
Stages without an estimate are listed by name.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rstar2_env.core.errors import Rstar2Error
from rstar2_env.core.run_folder import layout, read_run

from .cost import Cost

if TYPE_CHECKING:
    from collections.abc import Iterator

FIRST_S, MOST_S = 15.0, 120.0
"""Seconds until a stage's first line of progress, and maximum seconds between two lines; the interval doubles after
each line, up to this maximum."""


@dataclass(frozen=True, slots=True)
class TimedStep:
    """A step of a pipeline, with the data needed to estimate its time.

    Attributes:
        id: Id of the step.
        kind: The kind of its stage.
        cost: Estimated cost.
        measured: Measured seconds if the step has finished, else ``None``.
    """

    id: str
    kind: str
    cost: Cost
    measured: float | None = None

    @property
    def work(self) -> float:
        """Amount of work: episodes to play plus rows to train on, at least 1."""
        return float(max(1, self.cost.episodes + self.cost.rows))


def seconds_of(task: TimedStep, tasks: Sequence[TimedStep]) -> float | None:
    """Return the estimated seconds of a step; ``None`` if unknown.

    Args:
        task: The step whose time is estimated.
        tasks: All steps of the pipeline.
    """
    same = [one for one in tasks if one.kind == task.kind and one.measured is not None]
    if same:
        return task.work * sum(one.measured or 0.0 for one in same) / sum(one.work for one in same)
    return task.cost.seconds


def left(tasks: Sequence[TimedStep], now: str = "", share: float = 0.0, spent: float = 0.0) -> tuple[float, list[str]]:
    """Return the estimated remaining seconds, and the ids of the steps without an estimate.

    Args:
        tasks: All steps; steps with ``measured`` have finished.
        now: Id of the running step; empty if no step is running.
        share: Share of the running step, 0 to 1, that was done in the last ``spent`` seconds.
        spent: Seconds since the start of the running step.
    """
    seconds, unknown = 0.0, []
    for task in tasks:
        if task.measured is not None:
            continue
        whole = seconds_of(task, tasks)
        if task.id == now and share > 0:
            seconds += spent * (1 - share) / share
        elif whole is None:
            unknown.append(task.id)
        else:
            seconds += max(0.0, whole - (spent if task.id == now else 0.0))
    return seconds, unknown


@dataclass(slots=True)
class PipelineProgress:
    """Reports, at intervals, the progress of the running stage and the remaining time of all stages.

    Attributes:
        tasks: All steps, by id.
        say: Called with each line of progress.
    """

    tasks: Mapping[str, TimedStep]
    say: Callable[[str], None]
    done: tuple[int, int] = (0, 0)
    ended: threading.Event = field(default_factory=threading.Event)

    def report(self, done: int, total: int) -> None:
        """Record that ``done`` of the ``total`` items of the running stage are finished."""
        self.done = (done, total)

    @contextmanager
    def watching(self, step_id: str, folder: Path) -> Iterator[None]:
        """Report the progress of a stage that runs inside this context.

        Args:
            step_id: Id of the step whose stage runs.
            folder: Folder of that step.
        """
        self.done, self.ended = (0, 0), threading.Event()
        watcher = threading.Thread(target=self._watch, args=(step_id, folder, self.ended), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            self.ended.set()
            watcher.join()

    def line(self, step_id: str, folder: Path, first: float, spent: float) -> tuple[str, float]:
        """Return a line of progress, and the finished share of the stage.

        Args:
            step_id: Id of the running step.
            folder: Folder of the running step.
            first: Finished share of the stage when this run of the stage began.
            spent: Seconds since this run of the stage began.
        """
        done, total = self.done if self.done[1] else _steps(folder, self.tasks[step_id].cost.steps)
        share = done / total if total else 0.0
        here = (share - first) / (1 - first) if share > first and first < 1 else 0.0
        seconds, unknown = left(list(self.tasks.values()), step_id, here, spent)
        line = f"{step_id}: {done} of {total}" if total else f"{step_id}: {duration(spent)} so far"
        rest = f"; {duration(seconds)} left for all stages" if seconds else ""
        without = f", without {', '.join(unknown)}" if unknown and rest else ""
        return f"{line}{rest}{without}.", share

    def _watch(self, step_id: str, folder: Path, ended: threading.Event) -> None:
        began, wait = time.monotonic(), FIRST_S
        _, first = self.line(step_id, folder, 0.0, 0.0)
        while not ended.wait(wait):
            self.say(self.line(step_id, folder, first, time.monotonic() - began)[0])
            wait = min(MOST_S, 2 * wait)


def duration(seconds: float | None) -> str:
    """Format seconds for display; empty if unknown."""
    if seconds is None:
        return ""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes / 60:,.1f} h"


def _steps(folder: Path, steps: int) -> tuple[int, int]:
    """Return the number of finished steps of a training run, and ``steps``; both are 0 if the folder has no run.

    Args:
        folder: Folder of the run.
        steps: Total number of steps of the run.
    """
    if not steps or not (folder / layout.RUN_FILE).exists():
        return 0, 0
    try:
        metrics = read_run(folder).metrics()
    except (Rstar2Error, OSError):  # the folder is being created or replaced
        return 0, 0
    return int(metrics[-1]["step"]) if metrics else 0, steps
