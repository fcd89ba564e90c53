"""Progress of a command on stderr: a bar on a terminal, periodic lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Report(Protocol):
    """Is told how far a command is."""

    def __call__(self, done: int, total: int | None, words: str = "", /) -> None:
        """Take what there is.

        Args:
            done: How many are done.
            total: How many there will be; ``None`` when nobody knows.
            words: What else is known ("41.2 % right").
        """
        ...


FIRST_LINE_S = 5.0
"""Seconds until the first line, where there is no terminal; what is over by then says nothing."""

MOST_S = 60.0
"""Most seconds between two lines; the wait doubles up to this."""


@contextmanager
def progress(doing: str, *, total: int | None = None, quiet: bool = False) -> Iterator[Report]:
    """Show progress.

    Args:
        doing: What is being done ("playing").
        total: How many there will be, where that is known before the first report.
        quiet: Show nothing.
    """
    if quiet:
        yield lambda done, total, words="": None
    elif sys.stderr.isatty():
        with _bar(doing, total) as report:
            yield report
    else:
        yield _Lines(doing)


class _Lines:
    """Prints "playing: 120/1319 (9 %), 24.1/s, 50 s left" now and then."""

    def __init__(self, doing: str) -> None:
        self._doing = doing
        self._began = time.monotonic()
        self._wait = FIRST_LINE_S
        self._next = self._began + FIRST_LINE_S
        self._before: int | None = None

    def __call__(self, done: int, total: int | None, words: str = "", /) -> None:
        if self._before is None:
            self._before = done - 1  # What an earlier run had done says nothing of the speed of this one.
        now = time.monotonic()
        if now < self._next:
            return
        self._wait = min(MOST_S, 2 * self._wait)
        self._next = now + self._wait
        line = progress_line(self._doing, done, total, done - self._before, now - self._began)
        print(f"{line}, {words}" if words else line, file=sys.stderr)


def progress_line(doing: str, done: int, total: int | None, here: int, seconds: float) -> str:
    """One line of progress.

    Args:
        doing: What is being done.
        done: How many are done, those of an earlier run included.
        total: How many there will be.
        here: How many were done by this run.
        seconds: In how many seconds it did them.
    """
    speed = here / seconds if seconds > 0 else 0.0
    said = f"{doing}: {done}" if total is None else f"{doing}: {done}/{total} ({100 * done // max(1, total)} %)"
    said += f", {speed:.1f}/s" if speed >= 0.1 else f", {60 * speed:.1f} a minute"
    return said if total is None or not speed else f"{said}, {_duration((total - done) / speed)} left"


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"


@contextmanager
def _bar(doing: str, total: int | None) -> Iterator[Report]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    left, words = TimeRemainingColumn(), TextColumn("{task.fields[words]}")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), left, words)
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(doing, total=total, words="")
        yield lambda done, total, words="": bar.update(task, completed=done, total=total, words=words)
