"""``usable_cores``: the number of CPU cores that this process should use."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """Return the number of usable CPU cores, divided among the run's processes on this machine; at least 1.

    ``torchrun`` sets the number of the run's processes on this machine (``LOCAL_WORLD_SIZE``); each process opens its
    own sandbox and verifiers.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    processes = os.environ.get("LOCAL_WORLD_SIZE", "")
    return max(1, cores // int(processes)) if processes.isdecimal() and int(processes) else cores
