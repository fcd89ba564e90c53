"""``Clock``: measures the duration of the phases of a step."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rstar2_env.core.telemetry import phase_span


class Clock:
    """Sums seconds of wall-clock time by name."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(("rollout", "reward", "select", "advantage"), 0.0)

    @contextmanager
    def measure(self, name: str) -> Iterator[None]:
        """Context manager that adds its duration to the seconds of the phase ``name``."""
        begun = time.perf_counter()
        try:
            with phase_span(name):
                yield
        finally:
            self.seconds[name] += time.perf_counter() - begun
