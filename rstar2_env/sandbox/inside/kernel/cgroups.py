"""Control groups: limit the memory and the number of processes of a call, and set the call's share of the cores.

A group is reused for later calls. Covered: version 1 hierarchies and the version 2 tree, as root or in a delegated
subtree; peak memory (version 1), and kills for exceeding the memory limit; equal shares of the cores. Not covered:
input/output.
"""

from __future__ import annotations

import contextlib
import errno
import os

from ..folder_lock import lock_folder

_ROOT = "/sys/fs/cgroup"
_PREFIX = "rstar2-sandbox-"
_SPARE_BYTES = 32 << 20
"""Bytes by which a control group's memory limit exceeds the rlimit on a program's address space, so that the program
gets a MemoryError before the kernel kills it."""


_WEIGHTS = {1: ("cpu.shares", 1024), 2: ("cpu.weight", 100)}
"""For each version of control groups: the name of the file for the CPU weight, and a group's default weight."""
_LOWERED = 4
"""Divisor that lowers the CPU weight of a deprioritized call, about as much as a nice value higher by 6 would."""
_HEAVIEST = 100
"""Largest multiple of the default CPU weight that both versions of control groups accept."""


class ControlGroup:
    """A control group that one call uses at a time. Its files stay open, since every call reads and writes them."""

    def __init__(self, folders: dict[str, str], version: int) -> None:
        self._folders = folders
        self._version = version
        self._set: tuple[int, int] | None = None
        self._lowered = False
        self._memory = folders.get("memory")
        self._counter = self._peak = -1
        if self._memory is not None:
            counter = "memory.events" if version == 2 else "memory.oom_control"
            self._counter = os.open(os.path.join(self._memory, counter), os.O_RDONLY | os.O_CLOEXEC)
            if version == 1:
                self._peak = os.open(os.path.join(self._memory, "memory.max_usage_in_bytes"), os.O_RDWR | os.O_CLOEXEC)
        self._kills = self._kills_now()
        self.entrances = tuple(
            os.open(os.path.join(folder, "cgroup.procs"), os.O_WRONLY | os.O_CLOEXEC)
            for folder in dict.fromkeys(folders.values())
        )

    def prepare(self, memory_bytes: int, processes: int) -> None:
        """Set the limits and the full CPU weight for the next call, and reset the counters of memory and of kills."""
        if self._set != (memory_bytes, processes):
            if self._memory is not None:
                limit = "memory.max" if self._version == 2 else "memory.limit_in_bytes"
                _write(self._memory, limit, memory_bytes + _SPARE_BYTES)
            if "pids" in self._folders:
                _write(self._folders["pids"], "pids.max", processes)
            self._set = (memory_bytes, processes)
        if self._lowered:
            self._weigh(1)
            self._lowered = False
        self.reset_counters()

    def lower(self) -> None:
        """Lower the CPU weight of the group until the next call is prepared, if groups have a CPU weight."""
        if "cpu" in self._folders:
            self._lowered = True
            self._weigh(_LOWERED)

    def reset_counters(self) -> None:
        """Reset the counters of peak memory and of kills, for the next call or the next cell (call of a session)."""
        if self._peak >= 0:
            os.pwrite(self._peak, b"0", 0)
        self._kills = self._kills_now()

    def out_of_memory(self) -> bool:
        """Whether the kernel has killed a process for exceeding the memory limit since the counters were reset."""
        return self._kills_now() > self._kills

    def peak_bytes(self) -> int:
        """Return the peak memory in bytes since the counters were reset; 0 if it is not measured (version 2)."""
        return int(os.pread(self._peak, 32, 0)) if self._peak >= 0 else 0

    def close(self) -> None:
        """Remove the control group."""
        for descriptor in (*self.entrances, self._counter, self._peak):
            if descriptor >= 0:
                os.close(descriptor)
        for folder in set(self._folders.values()):
            with contextlib.suppress(OSError):
                os.rmdir(folder)

    def _weigh(self, divisor: int) -> None:
        file, weight = _WEIGHTS[self._version]
        _write(self._folders["cpu"], file, weight // divisor)

    def _kills_now(self) -> int:
        if self._counter < 0:
            return 0
        lines = os.pread(self._counter, 4096, 0).splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith(b"oom_kill "))


class ControlGroups:
    """The control group that contains the groups of all calls of one warden.

    Raises:
        OSError: No hierarchy with a memory controller is writable.
    """

    def __init__(self) -> None:
        self._name = f"{_PREFIX}{os.getpid()}"
        self._parents: dict[str, str] = {}
        self._locks: list[int] = []
        self.version, self.why_not = 0, ""
        for version, find in ((2, _version_2), (1, _limits_of_version_1)):
            try:
                places = find()
                for folder in dict.fromkeys(places.values()):
                    _sweep(folder)
                    self._locks.append(_make_locked(os.path.join(folder, self._name)))
                self._parents = {name: os.path.join(folder, self._name) for name, folder in places.items()}
                if version == 2:
                    _write(self._parents["memory"], "cgroup.subtree_control", "+memory +pids")
                self.version = version
                break
            except OSError as error:
                self.why_not = f"{error.strerror or error} ({error.filename or 'no writable hierarchy'})"
                self.close()
        if not self._parents:
            raise OSError(errno.EACCES, self.why_not)

    @property
    def controllers(self) -> tuple[str, ...]:
        """The names of the active controllers, such as ``memory``."""
        return tuple(self._parents)

    @property
    def unified(self) -> str | None:
        """In version 2, the folder of this group, which contains the groups of all calls; ``None`` in version 1."""
        return self._parents["memory"] if self.version == 2 else None

    def share_cores(self) -> str:
        """Give each group that is made from now on an equal share of the cores; return why this is not possible.

        The group that contains them gets the weight of one group times the number of cores, so that calls keep their
        share against other processes.

        Returns:
            The reason; empty if the groups have shares.
        """
        try:
            if self.version == 2:
                _write(self._parents["memory"], "cgroup.subtree_control", "+cpu")
                place = self._parents["memory"]
            else:
                above = _version_1("cpu")
                _sweep(above)
                place = os.path.join(above, self._name)
                self._locks.append(_make_locked(place))
            file, weight = _WEIGHTS[self.version]
            _write(place, file, weight * min(os.cpu_count() or 1, _HEAVIEST))
            self._parents["cpu"] = place
        except OSError as error:
            return f"the cpu controller is not available: {error.strerror or error}"
        return ""

    def make(self, index: int) -> ControlGroup:
        """Create a control group, whose name contains the unused number ``index``.

        Raises:
            OSError: The group cannot be created.
        """
        folders = {name: os.path.join(parent, f"call-{index}") for name, parent in self._parents.items()}
        for folder in dict.fromkeys(folders.values()):
            os.mkdir(folder)
        if self.version == 2:
            for file, value in (("memory.swap.max", 0), ("memory.oom.group", 1)):
                with contextlib.suppress(OSError):  # no swap, or an old kernel
                    _write(folders["memory"], file, value)
        return ControlGroup(folders, self.version)

    def close(self) -> None:
        """Remove the control group that contains the groups of all calls; these must be closed before."""
        for folder in set(self._parents.values()):
            with contextlib.suppress(OSError):
                os.rmdir(folder)
        for lock in self._locks:
            os.close(lock)
        self._parents, self._locks = {}, []


def _version_2() -> dict[str, str]:
    """Return, for ``memory`` and ``pids``, the folder in which version 2 control groups can be created.

    It is the folder of this process's own group, or of the nearest suitable group above it.

    Raises:
        OSError: Version 2 is not mounted, or no such folder is writable.
    """
    mount = next((path for kind, path in mounts() if kind == "cgroup2"), None)
    own = next((line[3:] for line in own_groups() if line.startswith("0::")), None)
    if mount is None or own is None:
        raise OSError(errno.ENOENT, "version 2 of control groups is not mounted")
    folder = os.path.normpath(f"{mount}/{own}")
    while True:
        enabled = _read(folder, "cgroup.subtree_control").split()
        available = _read(folder, "cgroup.controllers").split()
        writable = os.access(folder, os.W_OK) and os.access(os.path.join(folder, "cgroup.procs"), os.W_OK)
        if writable and {"memory", "pids"} <= set(available):
            if folder == mount and not {"memory", "pids"} <= set(enabled):
                with contextlib.suppress(OSError):  # the root group may enable them although it has processes
                    _write(folder, "cgroup.subtree_control", "+memory +pids")
                    enabled = _read(folder, "cgroup.subtree_control").split()
            if {"memory", "pids"} <= set(enabled):
                return {"memory": folder, "pids": folder}
        if folder == mount or len(folder) <= len(mount):
            raise OSError(
                errno.EACCES,
                "this user may not create version 2 control groups that limit memory and processes (the "
                "controllers memory and pids must be delegated to a group of this user)",
            )
        folder = os.path.dirname(folder)


def _limits_of_version_1() -> dict[str, str]:
    """Return, for ``memory`` and ``pids``, the folder of this process's group in version 1, if it is writable.

    Raises:
        OSError: The folder for ``memory`` is not writable.
    """
    found = {"memory": _version_1("memory")}
    with contextlib.suppress(OSError):
        found["pids"] = _version_1("pids")
    return found


def _version_1(controller: str) -> str:
    """Return the folder of this process's version 1 group for a controller.

    Raises:
        OSError: There is no such folder, or it is not writable.
    """
    for line in own_groups():
        _, names, path = line.split(":", 2)
        if controller in names.split(",") and os.access(folder := folder_of_version_1(names, path), os.W_OK):
            return folder
    raise OSError(errno.EACCES, f"this user may not create version 1 control groups of the controller {controller}")


def folder_of_version_1(names: str, path: str) -> str:
    """Return the folder of a group in version 1, given the names of its controllers and its path."""
    folder = os.path.normpath(f"{_ROOT}/{names}/{path}")
    # Inside a container, the path may be that of the host; the container's folder is then the mount point.
    return folder if os.path.isdir(folder) else f"{_ROOT}/{names}"


def _sweep(folder: str) -> None:
    """Remove the groups that killed wardens left. No process holds the lock of such a group."""
    for name in os.listdir(folder):
        stale = os.path.join(folder, name)
        if not name.startswith(_PREFIX) or not os.path.isdir(stale):
            continue
        with contextlib.suppress(OSError):
            os.close(lock_folder(stale))
            for inner in os.listdir(stale):
                if os.path.isdir(os.path.join(stale, inner)):
                    os.rmdir(os.path.join(stale, inner))
            os.rmdir(stale)


def _make_locked(folder: str) -> int:
    """Create and lock a folder, and return the lock's descriptor; try again if another warden removes the folder."""
    for _ in range(10):
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder)
        with contextlib.suppress(FileNotFoundError, BlockingIOError):
            return lock_folder(folder)
    raise OSError(errno.EBUSY, "another process holds the control group", folder)


def mounts() -> list[tuple[str, str]]:
    """Return the type and the folder of each mounted hierarchy of control groups."""
    with open("/proc/self/mounts") as file:
        return [(fields[2], fields[1]) for fields in map(str.split, file) if fields[2].startswith("cgroup")]


def own_groups() -> list[str]:
    """Return the lines ``id:controllers:path`` of this process's control groups."""
    with open("/proc/self/cgroup") as file:
        return file.read().splitlines()


def _read(folder: str, name: str) -> str:
    try:
        with open(os.path.join(folder, name)) as file:
            return file.read()
    except OSError:
        return ""


def _write(folder: str, name: str, value: object) -> None:
    with open(os.path.join(folder, name), "w") as file:
        file.write(str(value))
