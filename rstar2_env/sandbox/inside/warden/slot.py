"""A place for one child at a time: its user, its control group, its folder, and its limits."""

from __future__ import annotations

from typing import Any

from ..kernel.cgroups import ControlGroups

_SPARE_MEMORY = 64 << 20


class ChildSlot:
    """A place for one child at a time: its user, its control group, and where its working folder is made.

    Args:
        index: Its number.
        groups: The control groups of this warden, or ``None``.
        scratch: Where working folders are made; ``None`` when each child mounts its own.
        counted: Whether the kernel bounds the processes of its children's user.
    """

    def __init__(self, index: int, groups: ControlGroups | None, scratch: str | None, counted: bool) -> None:
        self.index = index
        self.group = groups.make(index) if groups is not None else None
        self.scratch = scratch
        bounded = groups.controllers if groups is not None else ()
        self.bounds_memory = "memory" in bounded
        self.bounds_processes = "pids" in bounded or counted
        self.bounds_files = scratch is None

    def unbounded(self, limits: dict[str, Any]) -> tuple[int, int, int]:
        """Those of a job's limits that only a watch can enforce here: processes, bytes of memory, bytes of files."""
        return (
            0 if self.bounds_processes else limits["processes"],
            0 if self.bounds_memory else limits["memory_bytes"] + _SPARE_MEMORY,
            0 if self.bounds_files else limits["file_bytes"],
        )

    @property
    def entrances(self) -> tuple[int, ...]:
        """Open files through which a process enters the control group."""
        return self.group.entrances if self.group is not None else ()

    def close(self) -> None:
        """Remove the control group."""
        if self.group is not None:
            self.group.close()
