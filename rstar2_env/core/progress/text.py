"""Formats lines of progress."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ActivityRow:
    """The state of one activity, for display.

    Attributes:
        doing: Name of the activity ("playing").
        began: Time of its start, on the clock of ``time.monotonic``.
        seconds: Seconds since its start.
        done: Number of finished items, including items of an earlier run.
        total: Number of items in all; ``None`` if unknown.
        in_this_run: Number of items finished by this run.
        note: Text to show next to the progress.
    """

    doing: str
    began: float
    seconds: float
    done: int = 0
    total: int | None = None
    in_this_run: int = 0
    note: str = ""

    @property
    def figures(self) -> str:
        """Return the progress of the activity as text, without its name."""
        figures = _figures(self.done, self.total, self.in_this_run, self.seconds)
        return ", ".join(part for part in (figures, self.note) if part)

    @property
    def line(self) -> str:
        """Return the name and the progress of the activity as one line."""
        return f"{self.doing}: {self.figures}"


def progress_line(doing: str, done: int, total: int | None, in_this_run: int, seconds: float) -> str:
    """Format one line of progress.

    Args:
        doing: Name of the activity.
        done: Number of finished items, including those of an earlier run.
        total: Number of items in all; ``None`` if unknown.
        in_this_run: Number of items finished by this run.
        seconds: Time that this run has taken.
    """
    return f"{doing}: {_figures(done, total, in_this_run, seconds)}"


def duration(seconds: float) -> str:
    """Format seconds for display: "12 s", "8 min", "16 h 39 min"."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"


def _figures(done: int, total: int | None, in_this_run: int, seconds: float) -> str:
    speed = in_this_run / seconds if seconds > 0 else 0.0
    counts = "" if total is None else f"{done}/{total} ({100 * done // max(1, total)} %)"
    if not speed:
        return ", ".join(part for part in (counts, f"{duration(seconds)} so far") if part)
    rate = f"{speed:.1f}/s" if speed >= 0.1 else f"{60 * speed:.1f}/min"
    if total is None:
        return f"{done}, {rate}"
    return f"{counts}, {rate}, {duration((total - done) / speed)} left"
