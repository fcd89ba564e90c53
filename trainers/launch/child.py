"""Executes a command that is terminated when its parent process ends: ``child.py CORES PARENT COMMAND...``.

The kernel sends the command SIGTERM when its parent ends for any reason, including SIGKILL, which a signal handler
cannot catch. ``CORES`` are the cores that the command may use ("0,1"), or "-" for all; ``PARENT`` is the parent's id.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_SET_DEATH_SIGNAL = 1


def main(cores: str, parent: str, *command: str) -> None:
    """Ask the kernel to send SIGTERM when the parent exits, and execute the command.

    Args:
        cores: Numbers of the cores that the command may use ("0,1"); "-" for all.
        parent: Process id of the parent.
        *command: The program and its arguments.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if sys.platform == "linux" and libc.prctl(_SET_DEATH_SIGNAL, signal.SIGTERM, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != int(parent):
        raise SystemExit(1)  # the parent ended before this process was bound to it
    if cores != "-":
        os.sched_setaffinity(0, map(int, cores.split(",")))
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(*sys.argv[1:])
