"""``Clock``: where the time of a step goes, by name."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Clock:
    """Adds up seconds of wall-clock time by name."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(("rollout", "reward", "select", "advantage"), 0.0)

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Add the time that the block takes."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] += time.perf_counter() - begun
