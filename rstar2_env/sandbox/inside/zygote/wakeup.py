"""A file descriptor that becomes readable when a child process has ended, to wake an event loop."""

from __future__ import annotations

import os
import signal


def wake_on_child_exit() -> tuple[int, int]:
    """From now on, write to a pipe whenever a child process ends; return the pipe's reading and writing descriptors."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return read, write


def stop_waking() -> None:
    """In a forked child: stop writing to the parent's pipe when a child process ends."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
