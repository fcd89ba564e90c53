"""A wakeup descriptor for the end of children, which becomes readable when a child has ended."""

from __future__ import annotations

import os
import signal


def wake_on_child_exit() -> tuple[int, int]:
    """Write to a pipe whenever a child ends, from now on; return the reading and the writing descriptor."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return read, write


def stop_waking() -> None:
    """In a forked child: restore the default handling, since the wakeup belongs to the parent."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
