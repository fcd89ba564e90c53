"""Waiting for a condition instead of a time: as long as it takes on a busy machine, and no longer on a quiet one."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_for(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait until a condition holds.

    Raises:
        AssertionError: It does not within ``seconds``.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"the condition did not come true within {seconds:g} s"
        time.sleep(0.02)
