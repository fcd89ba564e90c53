"""The plan: which layers are active, for the zygote and the children."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from . import linux

SCOPED = 6
"""Version of Landlock from which signals can be kept in."""

NAMESPACES = {
    "pid": ("process namespace", linux.CLONE_NEWPID),
    "mount": ("mount namespace", linux.CLONE_NEWNS),
    "net": ("network namespace", linux.CLONE_NEWNET),
    "ipc": ("ipc namespace", linux.CLONE_NEWIPC),
    "uts": ("host-name namespace", linux.CLONE_NEWUTS),
    "cgroup": ("cgroup namespace", linux.CLONE_NEWCGROUP),
}
"""Short name: what it is called, and its clone flag."""


@dataclass(slots=True)
class IsolationPlan:
    """The active layers.

    Attributes:
        isolated: Whether there is any isolation at all.
        user: Whether everything happens in a user namespace (an ordinary user's way to the others).
        users_from: As root, in a user namespace or without one: each slot runs as a user of its own, numbered from
            here; 0 means no change of user.
        namespaces: The other active namespaces.
        seccomp: Whether the system-call filter is active.
        landlock: Active version of Landlock; 0 means none.
        memory_group: Whether a control group bounds the memory of a call, with what the kernel holds for it.
        counted: Whether the kernel bounds the processes of a program's user, and counts them apart from all others.
        shared_processes: Processes that the caller's user had at the start and a margin, where programs run as the
            same ordinary user, or are counted together with it; 0 otherwise.
    """

    isolated: bool = True
    user: bool = False
    users_from: int = 0
    namespaces: tuple[str, ...] = ()
    seccomp: bool = False
    landlock: int = 0
    memory_group: bool = False
    counted: bool = False
    shared_processes: int = 0

    @property
    def own_user(self) -> bool:
        """Whether a program runs as another user than the caller, or in a user namespace of its own."""
        return self.user or self.users_from > 0

    @property
    def scoped(self) -> bool:
        """Whether Landlock keeps signals from leaving the sandbox."""
        return self.landlock >= SCOPED

    def flags(self, *names: str) -> int:
        """The clone flags of those of ``names`` that are active."""
        return sum(NAMESPACES[name][1] for name in names if name in self.namespaces)

    def as_dict(self) -> dict[str, Any]:
        """As plain data, for the zygote."""
        return asdict(self)
