"""What the server counts, in Prometheus' text format.

Covered: counters, gauges read at the moment of asking, and histograms of fixed buckets. Not covered: anything kept over
a restart.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping

BUCKETS_S = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper bounds of the histograms, in seconds."""
_PREFIX = "rstar2_sandbox_"


class Histogram:
    """Counts of seconds by bucket, and their mean of late."""

    def __init__(self) -> None:
        self._counts = [0] * (len(BUCKETS_S) + 1)
        self._sum = 0.0
        self.recent = 0.05
        """Moving mean of the last calls, in seconds; a guess until there was one."""

    def add(self, seconds: float) -> None:
        """Count one."""
        self._counts[bisect_left(BUCKETS_S, seconds)] += 1
        self._sum += seconds
        self.recent += 0.05 * (seconds - self.recent)

    def lines(self, name: str) -> list[str]:
        """As lines of the text format."""
        lines, total = [], 0
        for bound, count in zip((*map(str, BUCKETS_S), "+Inf"), self._counts, strict=True):
            total += count
            lines.append(f'{name}_bucket{{le="{bound}"}} {total}')
        return [*lines, f"{name}_sum {self._sum:.6f}", f"{name}_count {total}"]


class Metrics:
    """Everything that ``/metrics`` shows.

    Args:
        gauges: What is read at the moment of asking, by name: a function and a line of help.
    """

    def __init__(self, gauges: Mapping[str, tuple[Callable[[], float], str]]) -> None:
        self.calls: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self.wait = Histogram()
        self.service = Histogram()
        self._gauges = gauges

    def text(self) -> str:
        """The page."""
        lines = _header("calls_total", "counter", "Calls that have an outcome, by its status.")
        lines += [f'{_PREFIX}calls_total{{status="{status}"}} {count}' for status, count in sorted(self.calls.items())]
        for name, line in _COUNTERS.items():
            lines += [*_header(name, "counter", line), f"{_PREFIX}{name} {self.counts[name]}"]
        for name, (read, line) in self._gauges.items():
            lines += [*_header(name, "gauge", line), f"{_PREFIX}{name} {read():g}"]
        lines += _header("wait_seconds", "histogram", "Seconds that a call waited in the queue.")
        lines += self.wait.lines(f"{_PREFIX}wait_seconds")
        lines += _header("service_seconds", "histogram", "Seconds from the provider's start of a call to its outcome.")
        lines += self.service.lines(f"{_PREFIX}service_seconds")
        return "\n".join(lines) + "\n"


_COUNTERS = {
    "started_total": "Calls given to the provider.",
    "rejected_total": "Calls refused because the queue was full or the server was stopping.",
    "repeated_total": "Calls that came again under an id that was known, and were not run again.",
    "cancelled_total": "Calls ended because their client asked for it or went away.",
    "unauthorized_total": "Requests without the right token.",
}


def _header(name: str, kind: str, line: str) -> list[str]:
    return [f"# HELP {_PREFIX}{name} {line}", f"# TYPE {_PREFIX}{name} {kind}"]
