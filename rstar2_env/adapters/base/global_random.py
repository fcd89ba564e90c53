"""``GlobalRandom``: runs code that draws from the global random states, and restores those states.

Covered: ``random`` and ``numpy.random``; a lock lets one thread at a time use this class. Not covered: threads that
draw from the global states at the same time without this class; such threads cannot be isolated.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

_LOCK = threading.RLock()


class GlobalRandom:
    """Private random states that temporarily replace the global states of ``random`` and ``numpy.random``."""

    def __init__(self) -> None:
        self._own: tuple[Any, Any] | None = None

    @contextmanager
    def seeded(self, seed: int) -> Iterator[None]:
        """Replace the global random states with states from a seed >= 0, until the context ends."""
        self._own = random.Random(seed).getstate(), np.random.RandomState(seed % 2**32).get_state()
        with self.resumed():
            yield

    @contextmanager
    def resumed(self) -> Iterator[None]:
        """Continue with the private random states as the last use left them, until the context ends."""
        with _LOCK:
            kept = random.getstate(), np.random.get_state()
            if self._own is not None:
                random.setstate(self._own[0])
                np.random.set_state(self._own[1])
            try:
                yield
            finally:
                self._own = random.getstate(), np.random.get_state()
                random.setstate(kept[0])
                np.random.set_state(kept[1])
