"""Ctrl-C in commands with work in flight: the first one requests a stop, the second one stops immediately.

Not covered: training runs (``trainers/backends/trl/run/interrupt.py``).
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from rstar2_env.core.stop_request import Stop


@contextmanager
def stopped_by_ctrl_c(what: str) -> Iterator[Stop]:
    """Within the ``with`` block, let Ctrl-C request the yielded ``Stop`` instead of raising an exception.

    The first Ctrl-C requests the stop and names the work that is still in flight; the second raises
    ``KeyboardInterrupt``.

    Args:
        what: The unit of work in flight, in the plural ("episodes").
    """
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def handle(number: int, frame: FrameType | None) -> None:
        if stop():
            stop.request(at_once=True)
            raise KeyboardInterrupt
        stop.request()
        _print_to_stderr(
            f"Interrupted: waiting for the {stop.in_flight} {what} that have already started. Press Ctrl-C "
            "again to stop immediately."
        )

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)


def _print_to_stderr(text: str) -> None:
    # Not print(): the handler may have interrupted another print(). The escape code clears a progress bar.
    end = b"\r\x1b[K" if sys.stderr.isatty() else b""
    os.write(sys.stderr.fileno(), end + text.encode() + b"\n")
