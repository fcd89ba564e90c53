"""A program that becomes another, bound to the life of the one that started it: ``child.py CORES COMMAND...``.

The kernel sends it SIGTERM when its parent ends, however that ends: killed, too, which nothing else would notice.
``CORES`` are those that it may run on ("0,1"), or "-" for all.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_SET_DEATH_SIGNAL = 1


def main(cores: str, parent: str, *command: str) -> None:
    """Bind this process, and become the command."""
    libc = ctypes.CDLL(None, use_errno=True)
    if sys.platform == "linux" and libc.prctl(_SET_DEATH_SIGNAL, signal.SIGTERM, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != int(parent):
        raise SystemExit(1)  # it ended before it was bound to
    if cores != "-":
        os.sched_setaffinity(0, map(int, cores.split(",")))
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(*sys.argv[1:])
