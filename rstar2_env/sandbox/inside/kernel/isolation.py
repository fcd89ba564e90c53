"""Applies the layers of isolation to a child process right after the fork, before it receives its job.

The order matters: control group, namespaces, mounts, the change of user (which drops all capabilities), Landlock (which
blocks ``/proc``, through which users are mapped), and the system-call filter last. Any failure ends the child before it
receives a job. Covered: everything except the rlimits that depend on the job (``intake``).
"""

from __future__ import annotations

import fcntl
import os
import resource
import signal
from typing import TYPE_CHECKING

from . import landlock, linux, seccomp, users

if TYPE_CHECKING:
    from .plan import IsolationPlan

WORKDIR = "/tmp"
"""The program's working folder, if the sandbox can mount file systems."""
_MOST_PREPARED = 4096
_OPEN_FILES = 256
"""Largest number of open files of a program."""
_PENDING_SIGNALS = 256
"""Largest number of queued signals of a program's user, which the kernel counts over all processes of the user."""
PROC_FD = 3
"""Number of the file descriptor of ``/proc`` that the zygote inherits from the warden, used to map users."""
_INODES = 10_000
_MOUNT_FLAGS = linux.MS_NOSUID | linux.MS_NODEV
_HIDDEN = "hidepid=2,subset=pid"


class Isolation:
    """The layers of isolation for child processes, prepared once in their parent process.

    Args:
        plan: The active layers.
        readable: Paths that programs can read.
    """

    def __init__(self, plan: IsolationPlan, readable: list[str]) -> None:
        self._plan = plan
        self._pinned = "pid" not in plan.namespaces
        needs = seccomp.Needs(
            pin=self._pinned,
            no_signals=self._pinned and not plan.scoped,
            # Even in a user namespace, a program accesses files as the caller's user, and could change their metadata.
            spare_metadata="mount" not in plan.namespaces and not plan.users_from,
            # ``zygote.watch`` does not see descriptors in flight: open files, and sockets without a network namespace.
            pass_nothing="mount" not in plan.namespaces or not (plan.memory_group or "net" in plan.namespaces),
        )
        self._filter = seccomp.SeccompFilter(needs=needs) if plan.seccomp else None
        self._rules = landlock.LandlockRules(readable, plan.landlock) if plan.landlock else None
        self.base_memory = 0
        """Size in bytes of the parent's address space with the preloaded modules; it is added to the memory limit of a
        program."""
        self._nests = (
            plan.user and not plan.users_from
        )  # so that the kernel counts the processes of each call separately
        self._proc = fcntl.fcntl(PROC_FD, fcntl.F_DUPFD_CLOEXEC, 64) if self._nests else -1
        self._nets: dict[int, int] = {}  # a descriptor for the network namespace of each slot
        self._own_net = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC) if "net" in plan.namespaces else -1
        self._flags = plan.flags("mount", "ipc", "uts")
        self._hides_proc = "mount" in plan.namespaces and _can_mount_proc()
        self._prepared: dict[tuple[int, int], tuple[linux.PreparedCalls, linux.PreparedCalls]] = {}
        self._enter = linux.raw("setns")
        self._drops = plan.isolated and not plan.own_user
        self._mounts_files = "mount" in plan.namespaces
        self._sealing = self._last_calls()

    def most_processes(self, wanted: int) -> int | None:
        """Return the RLIMIT_NPROC that lets a program have ``wanted`` processes; ``None`` if no limit can be set."""
        if self._plan.counted:
            return wanted
        # The kernel counts all processes of the caller's user: this limit is coarse, and the watch adds a fine one.
        return self._plan.shared_processes + wanted if self._plan.shared_processes else None

    def measure(self) -> None:
        """Record the memory size of the parent process; call this when the parent has its final size."""
        with open("/proc/self/statm", "rb") as file:
            self.base_memory = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")

    def prepare(self, slot: int, file_bytes: int) -> None:
        """Prepare the system calls that isolate the children of a slot, before they are forked.

        Args:
            slot: Number of the slot (a place for one child at a time), which determines the child's user and network
                namespace.
            file_bytes: Size of the private file system in bytes.

        Raises:
            OSError: The network namespace cannot be created.
        """
        if self._own_net >= 0 and slot not in self._nets:
            self._nets[slot] = self._make_net()
        if (slot, file_bytes) not in self._prepared:
            user = self._plan.users_from + slot if self._plan.users_from else 0
            if len(self._prepared) > _MOST_PREPARED:
                self._prepared.clear()
            self._prepared[slot, file_bytes] = (self._entry(slot, user, file_bytes), _change_of_user(user))

    def enter(self, entrances: tuple[int, ...], init: int, workdir: str, slot: int, file_bytes: int) -> None:
        """Isolate this process, which was forked after ``prepare`` and still has all its file descriptors.

        Args:
            entrances: Descriptors of the ``cgroup.procs`` files of the call's control group.
            init: Descriptor of the process that only holds the namespaces (``linux.Pausing``), or -1.
            workdir: The working folder.
            slot: As in ``prepare``.
            file_bytes: As in ``prepare``.
        """
        entry, change_of_user = self._prepared[slot, file_bytes]
        for entrance in entrances:
            os.write(entrance, b"0")
        if init < 0 and self._flags:
            linux.unshare(self._flags)
        elif self._flags and self._enter(init, self._flags) < 0:
            raise linux.failure("setns")
        entry.run()
        if not self._mounts_files:
            self._settle_in(workdir, slot)
        if self._nests:
            users.nest(self._proc)
        change_of_user.run()
        if self._drops:
            linux.drop_capabilities()
        if self._rules is not None:
            self._rules.restrict(workdir)

    def seal(self) -> None:
        """Limit open files and queued signals, and install the system-call filter, as the last step."""
        if self._filter is not None and self._pinned:
            self._filter.pin(os.getpid())
        self._sealing.run()

    def _make_net(self) -> int:
        """Create a slot's network namespace (see ``prepare``); one per call would cost more than all other layers."""
        linux.unshare(linux.CLONE_NEWNET)
        try:
            return os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        finally:
            linux.setns(self._own_net, linux.CLONE_NEWNET)

    def _last_calls(self) -> linux.PreparedCalls:
        calls = linux.PreparedCalls()
        calls.add_limit(resource.RLIMIT_NOFILE, _OPEN_FILES)
        calls.add_limit(resource.RLIMIT_SIGPENDING, _PENDING_SIGNALS)
        if self._filter is not None:
            calls.add("prctl", linux.PR_SET_SECCOMP, linux.SECCOMP_MODE_FILTER, self._filter.program, 0, 0)
        return calls

    def _entry(self, slot: int, user: int, file_bytes: int) -> linux.PreparedCalls:
        """Prepare the system calls that enter the network namespace of the slot and mount private file systems."""
        calls = linux.PreparedCalls()
        if self._own_net >= 0:
            calls.add("setns", self._nets[slot], linux.CLONE_NEWNET)
        if not self._mounts_files:
            return calls
        options = f"size={file_bytes},nr_inodes={_INODES},mode=700,uid={user},gid={user}"
        calls.add("mount", "tmpfs", WORKDIR, "tmpfs", _MOUNT_FLAGS, options)
        if self._hides_proc:
            calls.add("mount", "proc", "/proc", "proc", _MOUNT_FLAGS | linux.MS_NOEXEC, _HIDDEN)
        else:  # /proc is masked by a container, or the kernel is old: hide everything behind an empty folder
            calls.add("mount", "tmpfs", "/proc", "tmpfs", _MOUNT_FLAGS | linux.MS_RDONLY, "size=4k")
        calls.add("chdir", WORKDIR)
        return calls

    def _settle_in(self, workdir: str, slot: int) -> None:
        """Change to a separate working folder on the machine's file system, if there is no private file system."""
        if self._plan.users_from:
            os.chown(workdir, self._plan.users_from + slot, self._plan.users_from + slot)
        os.chdir(workdir)
        os.environ["HOME"] = os.environ["TMPDIR"] = workdir


def _change_of_user(user: int) -> linux.PreparedCalls:
    """Prepare system calls that change to a user without capabilities, and that request SIGKILL if the parent ends."""
    calls = linux.PreparedCalls()
    if user:
        calls.add("setgroups", 0, None)
        calls.add("setresgid", user, user, user)
        calls.add("setresuid", user, user, user)
    calls.add("prctl", linux.PR_SET_DUMPABLE, 1, 0, 0, 0)  # the files in /proc then belong to the user
    calls.add("prctl", linux.PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    return calls


def _can_mount_proc() -> bool:
    """Whether a ``/proc`` can be mounted that shows the user's own processes and none of the kernel's other files."""
    try:
        linux.mount("proc", WORKDIR, "proc", _MOUNT_FLAGS | linux.MS_NOEXEC, _HIDDEN)
    except OSError:
        return False
    linux.unmount(WORKDIR)
    return True
