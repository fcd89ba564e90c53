"""The time left over all stages, as it is told while a pipeline runs.

What a stage takes is what the same kind took in this folder for its work (episodes that are played, rows that are
trained), by the seconds of the stages that ended; before one has ended, what ``rstar2 plan`` computes. Stages of which
neither is known are counted, not guessed.
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
"""Seconds until the first line of a stage, and the most between two; the wait doubles."""


@dataclass(frozen=True, slots=True)
class Task:
    """A step of a pipeline, as far as its time goes.

    Attributes:
        id: The step.
        kind: Its kind.
        cost: What it takes.
        measured: Seconds that it took, where it ended.
    """

    id: str
    kind: str
    cost: Cost
    measured: float | None = None

    @property
    def work(self) -> float:
        """How much there is to do: episodes to play and rows to train, at least 1."""
        return float(max(1, self.cost.episodes + self.cost.rows))


def seconds_of(task: Task, tasks: Sequence[Task]) -> float | None:
    """What a step will take; ``None`` where nobody knows.

    Args:
        task: The step.
        tasks: All steps of the pipeline.
    """
    same = [one for one in tasks if one.kind == task.kind and one.measured is not None]
    if same:
        return task.work * sum(one.measured or 0.0 for one in same) / sum(one.work for one in same)
    return task.cost.seconds


def left(tasks: Sequence[Task], now: str = "", share: float = 0.0, spent: float = 0.0) -> tuple[float, list[str]]:
    """Seconds that are left, and the steps of which nobody knows.

    Args:
        tasks: All steps; those with ``measured`` have ended.
        now: The step that runs.
        share: How much of it is done, 0 to 1.
        spent: Seconds that it has run.
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
class Progress:
    """Tells now and then how far a stage is, and the time that is left over all of them.

    Attributes:
        tasks: All steps.
        say: Is told.
    """

    tasks: Mapping[str, Task]
    say: Callable[[str], None]
    done: tuple[int, int] = (0, 0)
    ended: threading.Event = field(default_factory=threading.Event)

    def report(self, done: int, total: int) -> None:
        """Hear how far the stage is."""
        self.done = (done, total)

    @contextmanager
    def watching(self, step_id: str, folder: Path) -> Iterator[None]:
        """Watch a stage that runs within.

        Args:
            step_id: The step.
            folder: Its folder.
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
        """One line of progress, and the share of the stage that is done.

        Args:
            step_id: The step.
            folder: Its folder.
            first: Share of the stage that was done when the watching began.
            spent: Seconds since then.
        """
        done, total = self.done if self.done[1] else _steps(folder, self.tasks[step_id].cost.steps)
        share = done / total if total else 0.0
        here = (share - first) / (1 - first) if share > first and first < 1 else 0.0
        seconds, unknown = left(list(self.tasks.values()), step_id, here, spent)
        told = f"{step_id}: {done} of {total}" if total else f"{step_id}: {duration(spent)} so far"
        rest = f"; {duration(seconds)} left in all" if seconds else ""
        beside = f", without {', '.join(unknown)}" if unknown and rest else ""
        return f"{told}{rest}{beside}.", share

    def _watch(self, step_id: str, folder: Path, ended: threading.Event) -> None:
        began, wait = time.monotonic(), FIRST_S
        _, first = self.line(step_id, folder, 0.0, 0.0)
        while not ended.wait(wait):
            self.say(self.line(step_id, folder, first, time.monotonic() - began)[0])
            wait = min(MOST_S, 2 * wait)


def duration(seconds: float | None) -> str:
    """Seconds, for people; empty where nobody knows."""
    if seconds is None:
        return ""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes / 60:,.1f} h"


def _steps(folder: Path, steps: int) -> tuple[int, int]:
    """The steps of a training run in the folder that are done, and those it will take."""
    if not steps or not (folder / layout.RUN_FILE).exists():
        return 0, 0
    try:
        metrics = read_run(folder).metrics()
    except (Rstar2Error, OSError):  # it is being begun, or replaced
        return 0, 0
    return int(metrics[-1]["step"]) if metrics else 0, steps
