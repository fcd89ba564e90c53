"""A bell for the end of children: a descriptor that can be read from when one has ended."""

from __future__ import annotations

import os
import signal


def ring_on_exit() -> tuple[int, int]:
    """Ring from here on; returns the descriptor to read from, and the one that rings."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return read, write


def stop_ringing() -> None:
    """In a forked child: leave the bell to its parent."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
