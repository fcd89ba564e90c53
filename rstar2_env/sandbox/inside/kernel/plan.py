"""``IsolationPlan``: the layers of isolation that are active, for the zygote and its child processes."""

from __future__ import annotations

from dataclasses import dataclass

from . import linux

SCOPED = 6
"""First version of Landlock that can block signals to processes outside of the sandbox."""

NAMESPACES = {
    "pid": ("process namespace", linux.CLONE_NEWPID),
    "mount": ("mount namespace", linux.CLONE_NEWNS),
    "net": ("network namespace", linux.CLONE_NEWNET),
    "ipc": ("ipc namespace", linux.CLONE_NEWIPC),
    "uts": ("host-name namespace", linux.CLONE_NEWUTS),
    "cgroup": ("cgroup namespace", linux.CLONE_NEWCGROUP),
}
"""Title and ``clone`` flag of each kind of namespace, by its short name."""


@dataclass(slots=True)
class IsolationPlan:
    """The layers of isolation that are active.

    Attributes:
        isolated: False if isolation is switched off; all other fields then have their defaults.
        user: Whether the other namespaces are created in a user namespace (needed by ordinary users).
        users_from: First of the user ids for programs, if the warden is root: each slot (a place for one program at a
            time) has its own id. 0 means that programs keep the caller's user.
        namespaces: Short names of the active namespaces, other than the user namespace.
        seccomp: Whether the system-call filter is active.
        landlock: Version of Landlock that is used; 0 means that Landlock is not used.
        memory_group: Whether a control group limits the memory of a call, including kernel memory.
        counted: Whether the kernel counts a program's processes apart from all other processes, so that the program's
            limit on processes is exact.
        shared_processes: Number of the caller's processes at the start, plus a margin, if the kernel counts them
            together with the processes of programs; otherwise 0.
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
        """Whether a program runs under a different user id than the caller, or in its own user namespace."""
        return self.user or self.users_from > 0

    @property
    def scoped(self) -> bool:
        """Whether Landlock blocks signals to processes outside of the sandbox."""
        return self.landlock >= SCOPED

    def flags(self, *names: str) -> int:
        """Return the ``clone`` flags of the active namespaces among ``names``."""
        return sum(NAMESPACES[name][1] for name in names if name in self.namespaces)
