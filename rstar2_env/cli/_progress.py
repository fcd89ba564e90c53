"""Progress of a command on stderr: a bar on a terminal, periodic lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class ReportProgress(Protocol):
    """Callback that receives the progress of a command."""

    def __call__(self, done: int, total: int | None, note: str = "", /) -> None:
        """Receive the current progress.

        Args:
            done: Number of finished items.
            total: Number of items in all; ``None`` if unknown.
            note: Text to show next to the progress ("41.2 % right").
        """
        ...


FIRST_LINE_S = 5.0
"""Seconds until the first line if stderr is not a terminal; shorter work prints nothing."""

MOST_S = 60.0
"""Longest wait between two lines in seconds; the wait doubles up to this value."""


@contextmanager
def progress(doing: str, *, total: int | None = None, quiet: bool = False) -> Iterator[ReportProgress]:
    """Show progress on stderr.

    Args:
        doing: Name of the activity ("playing").
        total: Number of items, if known before the first report.
        quiet: Show nothing.
    """
    if quiet:
        yield lambda done, total, note="": None
    elif sys.stderr.isatty():
        with _bar(doing, total) as report:
            yield report
    else:
        yield _Lines(doing)


class _Lines:
    """Prints lines such as "playing: 120/1319 (9 %), 24.1/s, 50 s left" at growing intervals."""

    def __init__(self, doing: str) -> None:
        self._doing = doing
        self._began = time.monotonic()
        self._wait = FIRST_LINE_S
        self._next = self._began + FIRST_LINE_S
        self._before: int | None = None

    def __call__(self, done: int, total: int | None, note: str = "", /) -> None:
        if self._before is None:
            self._before = done - 1  # Items of an earlier run do not count for the speed of this run.
        now = time.monotonic()
        if now < self._next:
            return
        self._wait = min(MOST_S, 2 * self._wait)
        self._next = now + self._wait
        line = progress_line(self._doing, done, total, done - self._before, now - self._began)
        print(f"{line}, {note}" if note else line, file=sys.stderr)


def progress_line(doing: str, done: int, total: int | None, in_this_run: int, seconds: float) -> str:
    """Format one line of progress.

    Args:
        doing: Name of the activity.
        done: Number of finished items, including those of an earlier run.
        total: Number of items in all.
        in_this_run: Number of items finished by this run.
        seconds: Time that this run has taken.
    """
    speed = in_this_run / seconds if seconds > 0 else 0.0
    line = f"{doing}: {done}" if total is None else f"{doing}: {done}/{total} ({100 * done // max(1, total)} %)"
    line += f", {speed:.1f}/s" if speed >= 0.1 else f", {60 * speed:.1f}/min"
    return line if total is None or not speed else f"{line}, {_duration((total - done) / speed)} left"


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"


@contextmanager
def _bar(doing: str, total: int | None) -> Iterator[ReportProgress]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    left, note_column = TimeRemainingColumn(), TextColumn("{task.fields[note]}")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), left, note_column)
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(doing, total=total, note="")
        yield lambda done, total, note="": bar.update(task, completed=done, total=total, note=note)
