"""``ChildSlot``: the user id, control group and working folder that one child process at a time uses."""

from __future__ import annotations

import contextlib
from typing import Any

from ..kernel.cgroups import ControlGroups

_SPARE_MEMORY = 64 << 20
MOST_PIPES = 128
"""Largest number of pipes of a program if programs share the caller's user. It is an eighth of the number of full-size
pipes that the kernel gives to one user by default (``fs.pipe-user-pages-soft``), and also twice the default of
``processes``."""


class ChildSlot:
    """The resources that one child process uses at a time: user, control group, and place for a working folder.

    Args:
        index: Number of the slot.
        groups: The control groups of this warden; ``None`` if it cannot use any.
        scratch: Folder for working folders; ``None`` if each child mounts its own.
        counted: Whether the kernel can limit the processes of the slot's children without counting other processes.
        own_user: Whether the slot's children run under a user id of the machine that no other process has.

    Attributes:
        entrances: Open ``cgroup.procs`` files, through which a process enters the control group.
    """

    def __init__(
        self, index: int, groups: ControlGroups | None, scratch: str | None, counted: bool, own_user: bool
    ) -> None:
        self.index = index
        self.group = groups.make(index) if groups is not None else None
        self.entrances = self.group.entrances if self.group is not None else ()
        self.scratch = scratch
        bounded = groups.controllers if groups is not None else ()
        self.bounds_memory = "memory" in bounded
        self.bounds_processes = "pids" in bounded or counted
        self.bounds_files = scratch is None
        self.bounds_pipes = own_user

    def unbounded(self, limits: dict[str, Any]) -> tuple[int, int, int, int]:
        """Return the limits that ``Watch`` must enforce, because no layer of isolation does.

        Args:
            limits: Limits of a job.

        Returns:
            The limits on processes, bytes of memory, bytes of files, and pipes; 0 for a limit that a layer enforces.
        """
        return (
            0 if self.bounds_processes else limits["processes"],
            0 if self.bounds_memory else limits["memory_bytes"] + _SPARE_MEMORY,
            0 if self.bounds_files else limits["file_bytes"],
            0 if self.bounds_pipes else MOST_PIPES,
        )

    def lower(self) -> None:
        """Lower the CPU weight of the slot's control group, if it has a CPU weight, until the next call."""
        if self.group is not None:
            with contextlib.suppress(OSError):  # the processes of the call have a lower weight already
                self.group.lower()

    def close(self) -> None:
        """Remove the slot's control group."""
        if self.group is not None:
            self.group.close()
