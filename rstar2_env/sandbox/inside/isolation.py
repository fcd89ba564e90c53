"""Putting the layers in force, in a child that was just forked and before it has its job.

The order matters: control group, namespaces, mounts, the change of user (which gives up every capability), Landlock
(which would bar the way to ``/proc``, where users are mapped), and the system-call filter last. Whatever fails here
ends the child before any job reaches it. Covered: everything but rlimits, which wait for the job (``child``).
"""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING

from . import landlock, linux, seccomp

if TYPE_CHECKING:
    from .plan import Plan

INSIDE_USER = 1000
"""The user that a program sees itself as, in a user namespace."""
PROC_FD = 3
"""Where the warden leaves a descriptor on ``/proc`` for the warm parent: users are mapped through it."""
_INODES = 10_000
_MOUNT_FLAGS = linux.MS_NOSUID | linux.MS_NODEV


class Isolation:
    """What every child needs in order to isolate itself, made ready once in the warm parent."""

    def __init__(self, plan: Plan, readable: list[str]) -> None:
        self._plan = plan
        self._filter = seccomp.Filter() if plan.seccomp else None
        self._rules = landlock.Rules(readable) if plan.landlock else None
        self.own_user = plan.user or plan.users_from > 0
        self.base_memory = 0
        """Bytes of address space that the warm parent uses: the preloaded modules, not a program's own."""
        self._proc = fcntl.fcntl(PROC_FD, fcntl.F_DUPFD_CLOEXEC, 64) if plan.user else -1

    def measure(self) -> None:
        """Note the memory of the warm parent; call it when it is as large as it will be."""
        with open("/proc/self/statm", "rb") as file:
            self.base_memory = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")

    def enter(self, entrances: list[int], init: int, workdir: str, file_bytes: int, slot: int) -> None:
        """Isolate this process as far as it still can open descriptors.

        Args:
            entrances: Open ``cgroup.procs`` files of the call's control group.
            init: Descriptor of the pausing process that holds the namespaces, or -1.
            workdir: The working folder; a private file system of ``file_bytes`` where mounts are possible.
            file_bytes: What the working folder may hold.
            slot: Number of the call's slot, which decides its user.
        """
        plan = self._plan
        linux.set_dumpable(True)
        for entrance in entrances:
            os.write(entrance, b"0")
        if init >= 0 and (flags := plan.flags("mount", "ipc", "uts")):
            linux.setns(init, flags)
        elif flags := plan.flags("mount", "ipc", "uts"):
            linux.unshare(flags)
        user = plan.users_from + slot if plan.users_from else 0
        if "mount" in plan.namespaces:
            _mount(workdir, file_bytes, user)
        elif user:
            os.chown(workdir, user, user)
        os.chdir(workdir)
        os.environ["HOME"] = os.environ["TMPDIR"] = workdir
        self._change_user(user)
        if self._rules is not None:
            self._rules.restrict(workdir)
        linux.die_with_parent()

    def seal(self) -> None:
        """The last step: the system-call filter."""
        if self._filter is not None:
            linux.set_seccomp(self._filter.program)

    def _change_user(self, user: int) -> None:
        if user:
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
            linux.set_dumpable(True)
        elif self._plan.user:
            # A namespace of its own for each call: the kernel counts its processes apart from all others'.
            linux.unshare(linux.CLONE_NEWUSER)
            linux.map_user(self._proc, INSIDE_USER, (0, 0))
            linux.drop_bounding_capabilities()  # a new user namespace begins with all of them
            linux.drop_capabilities()


def _mount(workdir: str, file_bytes: int, user: int) -> None:
    options = f"size={file_bytes},nr_inodes={_INODES},mode=700,uid={user},gid={user}"
    linux.mount("tmpfs", workdir, "tmpfs", _MOUNT_FLAGS, options)
    try:
        linux.mount("proc", "/proc", "proc", _MOUNT_FLAGS | linux.MS_NOEXEC, "hidepid=2,subset=pid")
    except OSError:  # masked by a container, or an old kernel: an empty folder hides as much
        linux.mount("tmpfs", "/proc", "tmpfs", _MOUNT_FLAGS | linux.MS_RDONLY, "size=0")
