"""The activities of this process, which may be nested, and the thread that displays their progress.

An entry point (a command, ``evaluate``, a trainer) begins an activity with ``show=True``. Library code that it calls
begins activities without ``show``: these are displayed only within an activity that is displayed. Not covered: how they
look (``screens.py``).
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from rstar2_env.core.progress.screens import ProgressScreen, make_screen
from rstar2_env.core.progress.text import ActivityRow
from rstar2_env.core.text import harmless

TICK_S = 0.5
"""Seconds between two updates of the display."""

FIRST_WAIT_S = 3.0
"""Seconds after which ``waiting`` displays that this process waits."""


class ReportProgress(Protocol):
    """Callback that receives the number of finished items of an activity."""

    def __call__(self, done: int, total: int | None, note: str = "", /) -> None:
        """Receive the current progress.

        Args:
            done: Number of finished items.
            total: Number of items in all; ``None`` if unknown.
            note: Text to show next to the progress ("41.2 % right").
        """
        ...


ReportProblem: TypeAlias = Callable[[str], None]
"""Function that receives the latest problem of the awaited program or server ("connection refused, attempt 2 of
7")."""


@dataclass(eq=False, slots=True)
class _Activity:
    doing: str
    total: int | None
    done: int
    shown: bool
    began: float
    before: int | None = None  # items of an earlier run, which do not count for the rate
    note: str = ""

    def row(self, now: float) -> ActivityRow:
        before = self.done if self.before is None else self.before
        return ActivityRow(
            self.doing, self.began, now - self.began, self.done, self.total, self.done - before, self.note
        )


@dataclass(eq=False, slots=True)
class _Wait:
    begun: list[float] = field(default_factory=list)
    problem: str = ""

    def row(self, doing: str, now: float) -> ActivityRow:
        requests = f"{len(self.begun)} requests" if len(self.begun) > 1 else ""
        note = ", ".join(part for part in (requests, self.problem) if part)
        return ActivityRow(doing, min(self.begun), now - min(self.begun), note=note)


class _Display:
    """Holds this process's activities, and the programs that this process waits for; draws those that are shown."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._activities: list[_Activity] = []
        self._waits: dict[str, _Wait] = {}
        self._screen: ProgressScreen | None = None
        self._ended = threading.Event()
        self._drawn = 0.0

    def begin(self, doing: str, total: int | None, done: int | None, show: bool | None) -> _Activity:
        with self._lock:
            shown = bool(self._activities and self._activities[-1].shown) if show is None else show
            activity = _Activity(harmless(doing), total, done or 0, shown, time.monotonic(), before=done)
            self._activities.append(activity)
            if shown and self._screen is None:
                self._screen, self._ended = make_screen(), threading.Event()
                self.draw()
                threading.Thread(target=self._keep_drawing, args=(self._ended,), name="progress", daemon=True).start()
        return activity

    def end(self, activity: _Activity) -> None:
        with self._lock:
            self._activities.remove(activity)
            screen = self._screen
            if screen is not None and not any(one.shown for one in self._activities):
                self._screen = None
                self._ended.set()
                screen.close(activity.row(time.monotonic()))

    def draw_if_due(self) -> None:
        if self._screen is not None and time.monotonic() - self._drawn >= TICK_S:
            self.draw()

    def draw(self) -> None:
        with self._lock:
            if self._screen is not None:
                self._drawn = now = time.monotonic()
                rows = [activity.row(now) for activity in self._activities if activity.shown]
                waits = [wait.row(doing, now) for doing, wait in self._waits.items() if wait.begun]
                self._screen.draw([*rows, *(row for row in waits if row.seconds >= FIRST_WAIT_S)])

    def say(self, text: str) -> None:
        with self._lock:
            if self._screen is None:
                print(harmless(text), file=sys.stderr, flush=True)
            else:
                self._screen.say(harmless(text))

    @contextmanager
    def wait(self, doing: str) -> Iterator[ReportProblem]:
        began = time.monotonic()
        with self._lock:
            wait = self._waits.setdefault(doing, _Wait())
            wait.begun.append(began)

        def report(problem: str) -> None:
            wait.problem = problem

        try:
            yield report
        finally:
            with self._lock:
                wait.begun.remove(began)
                if not wait.begun:
                    self._waits.pop(doing, None)

    def _keep_drawing(self, ended: threading.Event) -> None:
        while not ended.wait(TICK_S):
            self.draw()


_DISPLAY = _Display()


@contextmanager
def progress(
    doing: str, *, total: int | None = None, done: int | None = None, show: bool | None = None
) -> Iterator[ReportProgress]:
    """Show an activity while the ``with`` block runs: a bar on a terminal and in a notebook, lines elsewhere.

    The first line appears after 2 seconds, further lines at intervals of at most 30 seconds, whether or not the block
    reports anything.

    Args:
        doing: Name of the activity ("playing").
        total: Number of items, if known before the first report.
        done: Number of items that an earlier run finished. ``None`` assumes that this run has finished one item at the
            first report, and an earlier run the others.
        show: Whether to show the activity and the activities within it; ``None`` shows them if the enclosing activity
            is shown, and hides them if there is no enclosing activity.
    """
    activity = _DISPLAY.begin(doing, total, done, show)

    def report(done: int, total: int | None, note: str = "", /) -> None:
        if activity.before is None:
            activity.before = max(0, done - 1)
        activity.done, activity.total, activity.note = done, total, note
        _DISPLAY.draw_if_due()

    try:
        yield report
    finally:
        _DISPLAY.end(activity)


@contextmanager
def waiting(what: str) -> Iterator[ReportProblem]:
    """Display that this process waits, if the ``with`` block takes some seconds and an activity is displayed.

    Concurrent ``with`` blocks with the same ``what`` are shown as one.

    Args:
        what: The awaited program or server ("http://127.0.0.1:8000/v1").

    Yields:
        A function that takes the latest problem, such as "connection refused, attempt 2 of 7".
    """
    with _DISPLAY.wait(f"waiting for {what}") as report:
        yield report


def say(text: str) -> None:
    """Print a line to stderr, above the progress bars if there are any."""
    _DISPLAY.say(text)
