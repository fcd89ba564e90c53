"""Prepares a job in a child process, before the code runs: reads the job, writes its files and input, applies limits.

The module also defines the fixed numbers of a child's descriptors, and sets rlimits. Not covered: the layers of
isolation (``isolation``), and limits on process trees (``cgroups``, ``watch``).
"""

from __future__ import annotations

import os
import resource
import sys
import time
from typing import TYPE_CHECKING, Any

from .. import wire

if TYPE_CHECKING:
    from ..kernel.isolation import Isolation

JOB_FD, REPORT_FD, STDIN_FD = 3, 4, 5
_SPARE_MEMORY = 32 << 20
"""Bytes between the soft and the hard memory limit, reserved for reporting a MemoryError."""


def find_own_modules() -> None:
    """Add the working folder to the import path, so that a program can import modules from there."""
    if sys.path[0] != os.getcwd():
        sys.path.insert(0, os.getcwd())


def bound(limits: dict[str, Any], isolation: Isolation, cpu_over_life_s: int = 0) -> None:
    """Apply the limits of the job to this process, as the last step before the code runs.

    Args:
        limits: Limits of the job.
        isolation: The active layers of isolation.
        cpu_over_life_s: Limit on the CPU seconds of all cells of a session together; 0 for a single program.
    """
    soft = _cpu_limit(limits)
    limit(resource.RLIMIT_CPU, soft, max(soft + 1, cpu_over_life_s))
    limit(resource.RLIMIT_FSIZE, limits["file_bytes"], limits["file_bytes"])
    memory = limits["memory_bytes"] + isolation.base_memory
    limit(resource.RLIMIT_AS, memory, memory + _SPARE_MEMORY)
    if (most := isolation.most_processes(limits["processes"])) is not None:
        limit(resource.RLIMIT_NPROC, most, most)


def bound_cpu(limits: dict[str, Any]) -> None:
    """Set the CPU limit for the next cell of a session, within the CPU time that the session has left."""
    now, hard = resource.getrlimit(resource.RLIMIT_CPU)
    soft = _cpu_limit(limits)
    if hard != resource.RLIM_INFINITY:
        soft = min(soft, hard)
    if soft != now:  # in whole seconds, so most cells change nothing
        resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def limit(kind: int, soft: int, hard: int) -> None:
    """Lower an rlimit; an existing lower limit is kept.

    Args:
        kind: The rlimit, a constant ``RLIMIT_*``.
        soft: New soft limit.
        hard: New hard limit.
    """
    _, old_hard = resource.getrlimit(kind)
    if old_hard != resource.RLIM_INFINITY:
        hard = min(hard, old_hard)
    resource.setrlimit(kind, (min(soft, hard), hard))


def _cpu_limit(limits: dict[str, Any]) -> int:
    """Return the CPU limit of this process in seconds: the time used so far plus the job's ``cpu_s``, rounded up."""
    return max(1, int(-(-(limits["cpu_s"] + time.process_time()) // 1)))


def read_job() -> wire.Frame | None:
    """Read exactly one frame from the job pipe; return ``None`` if the pipe is closed."""
    prefix = bytearray(wire.PREFIX_BYTES)
    if not _fill(prefix, 0):
        return None
    raw = bytearray(wire.frame_bytes(prefix))
    raw[: len(prefix)] = prefix
    return wire.unpack(raw) if _fill(raw, len(prefix)) else None


def _fill(raw: bytearray, at: int) -> bool:
    """Fill a buffer from index ``at`` to its end from the job pipe; return false if the pipe is closed first."""
    with memoryview(raw) as whole:
        while at < len(raw):
            count = os.readv(JOB_FD, (whole[at : at + (1 << 20)],))
            if not count:
                return False
            at += count
    return True


def write_files(names: list[str], frame: wire.Frame) -> None:
    """Write a job's files to the working folder; blob ``i + 2`` of the frame holds the contents of ``names[i]``."""
    for place, name in enumerate(names, 2):
        os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
        with open(name, "wb") as file:
            file.write(frame.view(place))


def set_stdin(view: memoryview) -> None:
    """Set the contents of the program's standard input, which is empty by default."""
    os.ftruncate(STDIN_FD, 0)
    os.lseek(STDIN_FD, 0, os.SEEK_SET)
    while view:
        view = view[os.write(STDIN_FD, view) :]
    os.lseek(STDIN_FD, 0, os.SEEK_SET)
    os.dup2(STDIN_FD, 0)
