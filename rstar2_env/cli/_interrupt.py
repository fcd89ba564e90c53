"""Ctrl-C in a command with work in flight: a message at once, and a second Ctrl-C that stops without waiting."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from rstar2_env.core.stop import Stop


@contextmanager
def stopped_by_ctrl_c(what: str) -> Iterator[Stop]:
    """Let Ctrl-C stop what runs within, by way of the ``Stop`` that this gives.

    The first Ctrl-C requests the stop and says what is being waited for; the second raises ``KeyboardInterrupt``.

    Args:
        what: What is in flight ("episodes").
    """
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def handle(number: int, frame: FrameType | None) -> None:
        if stop():
            stop.wish(at_once=True)
            raise KeyboardInterrupt
        stop.wish()
        _say(f"Interrupted: finishing {stop.in_flight} {what} in flight; press Ctrl-C again to stop now.")

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)


def _say(text: str) -> None:
    # Not print(): the handler may have interrupted one in the middle of its buffer. A bar may stand on the line.
    end = b"\r\x1b[K" if sys.stderr.isatty() else b""
    os.write(sys.stderr.fileno(), end + text.encode() + b"\n")
