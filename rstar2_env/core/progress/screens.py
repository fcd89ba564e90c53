"""Displays of progress: bars on a terminal, lines on any other stderr, one output in a notebook's cell."""

from __future__ import annotations

import html
import sys
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, Protocol

from rstar2_env.core.progress.text import ActivityRow

FIRST_LINE_S = 2.0
"""Seconds until the first line about an activity if stderr is not a terminal; shorter activities print nothing.
Including the start of the program, a user waits less than 5 seconds for the line."""

MOST_S = 30.0
"""Longest interval between two lines, in seconds; intervals double up to this value."""

FIRST_BAR_S = 1.0
"""Seconds until an activity within another activity gets its own bar."""

_BAR_WIDTH = 24
_KEPT_LINES = 8


class ProgressScreen(Protocol):
    """Displays the activities of the process."""

    def draw(self, rows: Sequence[ActivityRow]) -> None:
        """Display the activities, the outermost first; called at short intervals."""

    def say(self, text: str) -> None:
        """Print a line that stays on the screen."""

    def close(self, last: ActivityRow) -> None:
        """Remove the display of activities; ``last`` is the final state of the outermost activity."""


def make_screen() -> ProgressScreen:
    """Return the display for this process: a notebook's cell, a terminal or plain lines."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if getattr(shell, "kernel", None) is not None:
        return NotebookCell()
    return Bars() if sys.stderr.isatty() else ProgressLines()


class ProgressLines:
    """Display that prints lines such as "playing: 120/1319 (9 %), 24.1/s, 50 s left" at growing intervals."""

    def __init__(self) -> None:
        self._printed = -float("inf")
        self._waits: dict[str, float] = {}

    def draw(self, rows: Sequence[ActivityRow]) -> None:
        """Print one line about all activities if a line is due for any of them."""
        now = time.monotonic()
        if any(now - max(self._printed, row.began) >= self._waits.get(row.doing, FIRST_LINE_S) for row in rows):
            self._printed = now
            for row in rows:
                self._waits[row.doing] = min(MOST_S, 2 * self._waits.get(row.doing, FIRST_LINE_S))
            *outer, last = rows
            words = [row.doing if row.total is None else row.line for row in outer]
            print(" | ".join([*words, last.line]), file=sys.stderr, flush=True)

    def say(self, text: str) -> None:
        """Print a line on stderr."""
        self._printed = time.monotonic()
        print(text, file=sys.stderr, flush=True)

    def close(self, last: ActivityRow) -> None:
        """Do nothing: the caller prints the result."""


class Bars:
    """Display that shows a bar for each activity on a terminal, and removes the bars at the end."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        left, right = TextColumn("{task.description}", markup=False), TextColumn("{task.fields[text]}", markup=False)
        self._bars = Progress(left, BarColumn(_BAR_WIDTH), right, console=Console(stderr=True), transient=True)
        self._tasks: dict[float, Any] = {}
        self._bars.start()

    def draw(self, rows: Sequence[ActivityRow]) -> None:
        """Update the bars to the current state of the activities."""
        shown = {row.began: row for at, row in enumerate(rows) if at == 0 or row.seconds >= FIRST_BAR_S}
        for began in [began for began in self._tasks if began not in shown]:
            self._bars.remove_task(self._tasks.pop(began))
        for began, row in shown.items():
            if began not in self._tasks:
                self._tasks[began] = self._bars.add_task(row.doing, total=row.total, text="")
            self._bars.update(self._tasks[began], completed=row.done, total=row.total, text=row.figures)

    def say(self, text: str) -> None:
        """Print the line above the bars."""
        self._bars.console.print(text, markup=False, highlight=False)

    def close(self, last: ActivityRow) -> None:
        """Remove the bars from the terminal."""
        self._bars.stop()


class NotebookCell:
    """Display in a notebook: one output of the running cell shows the activities and the last printed lines."""

    def __init__(self) -> None:
        from IPython import display

        show: Any = display.display
        self._lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._handle = show(self._content([]), raw=True, display_id=True)

    def draw(self, rows: Sequence[ActivityRow]) -> None:
        """Replace the output with the current state of the activities."""
        self._update([f"{_text_bar(row)}{row.line}" for row in rows])

    def say(self, text: str) -> None:
        """Add a line, which the next ``draw`` displays."""
        self._lines.append(text)

    def close(self, last: ActivityRow) -> None:
        """Leave the last lines and the final state of the outermost activity in the cell's output."""
        self._update([last.line])

    def _update(self, lines: Sequence[str]) -> None:
        self._handle.update(self._content(lines), raw=True)

    def _content(self, lines: Sequence[str]) -> dict[str, str]:
        text = "\n".join([*self._lines, *lines])
        return {"text/plain": text, "text/html": f"<pre>{html.escape(text)}</pre>"}


def _text_bar(row: ActivityRow) -> str:
    if not row.total:
        return ""
    full = min(_BAR_WIDTH, _BAR_WIDTH * row.done // row.total)
    return f"{'█' * full}{'░' * (_BAR_WIDTH - full)} "
