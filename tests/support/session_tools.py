"""What the tests of sessions share."""

from __future__ import annotations

import contextlib
import os

STUBBORN = """
import time
def forever():
    while True:
        try:
            time.sleep(0.01)
        except BaseException:
            pass
forever()
"""


def cpu_of(pid: int) -> float:
    """CPU seconds of a process."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def holds_mark(pid: int) -> bool:
    """Whether a process has the file open by which a test knows its session."""
    with contextlib.suppress(OSError):
        for number in os.listdir(f"/proc/{pid}/fd"):
            if os.readlink(f"/proc/{pid}/fd/{number}").endswith("/mark"):
                return True
    return False


def state_of(pid: int) -> str:
    """What a process does, by one letter of the kernel ("R", "S", "T"); "X" once it is gone."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0]
    except OSError:
        return "X"
