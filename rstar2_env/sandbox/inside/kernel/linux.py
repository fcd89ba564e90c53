"""Linux system calls that have no Python function, called through ``ctypes``.

Covered: a function for each call, which raises ``OSError`` if the call fails; and ``Pausing``, which creates a process
that is pid 1 of a namespace. On other systems than Linux, the module can be imported, but every call fails.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import platform
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

IS_LINUX = sys.platform == "linux"


class _NoLibrary:
    def __getattr__(self, name: str) -> Any:
        raise OSError(0, f"{name} exists only on Linux")


_libc: Any = ctypes.CDLL(None, use_errno=True) if IS_LINUX else _NoLibrary()

# New calls have the same number on x86_64 and aarch64; older ones, such as pivot_root, differ.
SYS_MOUNT_SETATTR, SYS_LANDLOCK_CREATE, SYS_LANDLOCK_ADD, SYS_LANDLOCK_RESTRICT = 442, 444, 445, 446
_SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_SYS_CAPSET = {"x86_64": 126, "aarch64": 91}

CLONE_VM = 0x00000100
CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND = 2, 4, 8, 32, 4096
MS_RDONLY, MS_REC, MS_PRIVATE, MS_SLAVE = 1, 16384, 1 << 18, 1 << 19
MNT_DETACH = 2
_ATTR_RDONLY, _ATTR_NOSUID, _ATTR_NODEV = 1, 2, 4
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, _PR_CAPBSET_DROP = 1, 4, 24
PR_SET_SECCOMP, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 22, 36, 38
SECCOMP_MODE_FILTER = 2
_PR_SET_KEEPCAPS, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE = 8, 47, 2
CAP_DAC_OVERRIDE = 1
_LAST_CAPABILITY = 63
_STACK_BYTES = 1 << 16
_REPLACED = (
    "syscall",
    "prctl",
    "unshare",
    "setns",
    "mount",
    "umount2",
    "chdir",
    "setgroups",
    "setresgid",
    "setresuid",
    "setrlimit",
)
_PF_EXITING = 0x4
_SIG_SETMASK, _ALL_BITS = 2, (1 << 64) - 1


def _checked(result: int, what: str) -> int:
    if result < 0:
        raise failure(what)
    return result


def _call(name: str, *arguments: object) -> int:
    return _checked(int(getattr(_libc, name)(*arguments)), name)


def raw(name: str) -> Any:
    """Return a function of the C library, whose result is negative if the call fails (see ``failure``)."""
    return getattr(_libc, name)


def failure(what: str) -> OSError:
    """Return the error of the C library function that failed last; the message begins with ``what``."""
    number = ctypes.get_errno()
    return OSError(number, f"{what}: {os.strerror(number)}")


def syscall(name: str, number: int, *arguments: object) -> int:
    """Make a system call by number.

    Args:
        name: Name of the call, for error messages.
        number: Number of the call on this machine.
        *arguments: Arguments of the call.

    Raises:
        OSError: The call failed; the message starts with ``name``.
    """
    return _checked(int(_libc.syscall(ctypes.c_long(number), *arguments)), name)


def prctl(option: int, *arguments: int) -> int:
    """Make the system call ``prctl``, and return its result."""
    return _call("prctl", ctypes.c_int(option), *(ctypes.c_ulong(value) for value in (*arguments, 0, 0, 0, 0)[:4]))


@contextlib.contextmanager
def inert() -> Iterator[None]:
    """Within the ``with`` block, let every C function named in ``_REPLACED`` do nothing and report success."""
    kept = {name: getattr(_libc, name) for name in _REPLACED}
    try:
        for name in _REPLACED:
            setattr(_libc, name, _libc.getpid)
        yield
    finally:
        for name, function in kept.items():
            setattr(_libc, name, function)


def die_with_parent(sent: signal.Signals = signal.SIGKILL) -> None:
    """Make the kernel send a signal to this process when the thread that created this process ends."""
    prctl(PR_SET_PDEATHSIG, int(sent))


def become_subreaper() -> bool:
    """Make this process the parent of orphaned descendants; return false if the kernel cannot do this (gVisor)."""
    try:
        prctl(_PR_SET_CHILD_SUBREAPER, 1)
    except OSError:
        return False
    return True


def has_pidfds() -> bool:
    """Whether the kernel supports pidfds (file descriptors that refer to a process)."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:
        return False
    return True


def set_dumpable(on: bool) -> None:
    """Set whether processes of the same user can inspect this process."""
    prctl(PR_SET_DUMPABLE, int(on))


def no_new_privileges() -> None:
    """Prevent programs that are executed from now on from gaining privileges."""
    prctl(_PR_SET_NO_NEW_PRIVS, 1)


def drop_bounding_capabilities() -> None:
    """Drop all capabilities from the bounding set, from which executed programs could gain them."""
    for capability in range(_LAST_CAPABILITY + 1):
        try:
            prctl(_PR_CAPBSET_DROP, capability)
        except OSError:  # beyond the last capability of this kernel
            return


def drop_capabilities() -> None:
    """Drop all capabilities of this process."""
    _set_capabilities(0)


def keep_capabilities(capability: int, change_user: Callable[[], None]) -> None:
    """As root, change the user and keep a single capability, even for programs that are executed.

    Args:
        capability: Number of the capability to keep, below 32; if this process does not have it, none is kept.
        change_user: Changes the user of this process.
    """
    prctl(_PR_SET_KEEPCAPS, 1)
    change_user()
    try:
        _set_capabilities(1 << capability)
        prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, capability)
    except OSError:
        drop_capabilities()


def _set_capabilities(bits: int) -> None:
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    data = (ctypes.c_uint32 * 6)(bits, bits, bits)
    syscall("capset", _SYS_CAPSET[platform.machine()], header, data)


def set_seccomp(program: ctypes.Structure) -> None:
    """Install a system-call filter (a ``sock_fprog``) for this process and its descendants."""
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(program))


def unshare(flags: int) -> None:
    """Move this process to new namespaces of the kinds given by ``flags``."""
    _call("unshare", ctypes.c_int(flags))


def setns(descriptor: int, flags: int) -> None:
    """Enter the namespaces of a process, given by its pidfd, or one namespace, given by its descriptor."""
    _checked(_libc.setns(descriptor, flags), "setns")


def mount(source: str, target: str, kind: str | None = None, flags: int = 0, data: str | None = None) -> None:
    """Mount a file system.

    Args:
        source: Device, or folder to bind; any text for a file system without a device, such as tmpfs.
        target: Mount point.
        kind: File system type; ``None`` for a bind mount, or to change an existing mount.
        flags: Sum of constants ``MS_*``.
        data: Options of the file system, such as ``size=4k``; ``None`` for none.
    """
    encoded = [None if text is None else os.fsencode(text) for text in (source, target, kind, data)]
    _call("mount", *encoded[:3], ctypes.c_ulong(flags), encoded[3])


def unmount(target: str) -> None:
    """Unmount the file system at ``target``."""
    _call("umount2", os.fsencode(target), ctypes.c_int(MNT_DETACH))


def bind_read_only(source: str, target: str) -> None:
    """Bind ``source`` and its submounts to ``target``, read-only; device files and set-uid bits have no effect."""
    mount(source, target, None, MS_BIND | MS_REC)
    attributes = (ctypes.c_uint64 * 4)(_ATTR_RDONLY | _ATTR_NOSUID | _ATTR_NODEV, 0, 0, 0)
    path = os.fsencode(target)
    try:
        size = ctypes.c_size_t(ctypes.sizeof(attributes))
        syscall("mount_setattr", SYS_MOUNT_SETATTR, ctypes.c_int(_AT_FDCWD), path, _AT_RECURSIVE, attributes, size)
    except OSError:  # before Linux 5.12: change only the top mount, and keep the flags that a user namespace locks
        flags = os.statvfs(target).f_flag & (MS_NOSUID | MS_NODEV | MS_NOEXEC)
        mount("none", target, None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | flags)


def pivot_root(new_root: str) -> None:
    """Make ``new_root`` the root of this mount namespace and detach the old one."""
    os.chdir(new_root)
    syscall("pivot_root", _SYS_PIVOT_ROOT[platform.machine()], b".", b".")
    unmount(".")
    os.chdir("/")


def map_user(proc: int, inside: int, outside: tuple[int, int]) -> None:
    """Map one user and one group of the parent namespace into a new user namespace.

    Args:
        proc: Descriptor of a ``/proc`` that contains this process.
        inside: Id of both the user and the group in the new namespace.
        outside: Ids of the user and the group in the parent namespace.
    """
    lines = {"setgroups": "deny", "uid_map": f"{inside} {outside[0]} 1", "gid_map": f"{inside} {outside[1]} 1"}
    for name, line in lines.items():
        descriptor = os.open(f"self/{name}", os.O_WRONLY, dir_fd=proc)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)


class PreparedCalls:
    """System calls whose arguments are prepared before a fork, so that the child touches little memory to make them."""

    def __init__(self) -> None:
        self._steps: list[tuple[str, Any, tuple[Any, ...]]] = []

    def add(self, name: str, *arguments: int | str | ctypes.Array[Any] | ctypes.Structure | None) -> None:
        """Add a call of the C library function ``name``, which must return -1 if it fails."""
        self._steps.append((name, getattr(_libc, name), tuple(_as_c(argument) for argument in arguments)))

    def add_limit(self, kind: int, most: int) -> None:
        """Add a call that lowers the soft and the hard limit of an rlimit to ``most``; a lower hard limit is kept."""
        _, hard = resource.getrlimit(kind)
        bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
        self.add("setrlimit", kind, (ctypes.c_ulong * 2)(bound, bound))

    def run(self) -> None:
        """Make all added calls, in order.

        Raises:
            OSError: A call failed; later calls were not made.
        """
        for name, function, arguments in self._steps:
            if function(*arguments) < 0:
                raise failure(name)


def _as_c(argument: int | str | ctypes.Array[Any] | ctypes.Structure | None) -> Any:
    """Convert an argument to a number, bytes or a reference, which ``ctypes`` passes without creating an object."""
    if isinstance(argument, (ctypes.Array, ctypes.Structure)):
        return ctypes.byref(argument)
    return os.fsencode(argument) if isinstance(argument, str) else argument


def plain_fork() -> Callable[[], int]:
    """Return the ``fork`` of the C library, which skips Python's steps after a fork (reseeding, new locks, and others).

    A process with one thread does not need these steps, and they would write to, and so copy, about 250 pages of memory
    in each child.

    Returns:
        The C library's ``fork``, whose result is negative if it fails (see ``failure``), or ``os.fork`` if this process
        has other threads.
    """
    if not IS_LINUX or len(os.listdir("/proc/self/task")) > 1:
        return os.fork
    fork: Callable[[], int] = ctypes.PyDLL(None, use_errno=True).fork
    return fork


class Pausing:
    """Creates processes that only wait: each is pid 1 of a new pid namespace, in which the program then runs.

    If the program itself were pid 1, it would survive a SIGKILL that it sends to itself. Since a fork of a warm
    interpreter costs milliseconds, the waiting process shares this process's memory (CLONE_VM, without a copy) and runs
    one C function that never returns. All signals except SIGKILL are blocked, so that no handler of the interpreter can
    run there.

    Args:
        flags: Kinds of namespaces that each process gets.
    """

    def __init__(self, flags: int) -> None:
        # Private memory, so that programs in forked children cannot write to it.
        self._stack = mmap.mmap(-1, _STACK_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        base = ctypes.addressof(ctypes.c_char.from_buffer(self._stack))
        top = ctypes.c_void_p(base + _STACK_BYTES - 64)
        self._arguments = (ctypes.cast(_libc.pause, ctypes.c_void_p), top, flags | CLONE_VM | int(signal.SIGCHLD), None)
        self._all, self._before = (ctypes.c_ulong * 16)(*[_ALL_BITS] * 16), (ctypes.c_ulong * 16)()
        self._clone, self._mask = _libc.clone, _libc.sigprocmask

    def make(self) -> int:
        """Start a process that only waits, and return its id."""
        self._mask(_SIG_SETMASK, self._all, self._before)
        pid = self._clone(*self._arguments)
        self._mask(_SIG_SETMASK, self._before, None)
        return _checked(pid, "clone")


class Reaper:
    """Reaps ended children without creating Python objects for them."""

    def __init__(self) -> None:
        self._status, self._usage = ctypes.c_int(), (ctypes.c_long * 18)()
        self._references = (ctypes.byref(self._status), 0, self._usage)
        self._wait = _libc.wait4

    def wait(self, pid: int) -> tuple[int, int, int]:
        """Reap a child; return its wait status, CPU time in microseconds and peak memory in KiB."""
        _checked(self._wait(pid, *self._references), "wait4")
        usage = self._usage
        return self._status.value, (usage[0] + usage[2]) * 1_000_000 + usage[1] + usage[3], usage[4]


def is_exiting(pid: int) -> bool:
    """Whether a process is exiting or has already ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            flags = int(file.read().rpartition(b")")[2].split()[6])
    except OSError:
        return True
    return bool(flags & _PF_EXITING)


def kill(pid: int) -> None:
    """Kill a process; do nothing if the process has already ended."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def children() -> list[int]:
    """Return the ids of this process's children; empty if the kernel does not list them."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", "rb") as file:
            return [int(pid) for pid in file.read().split()]
    except OSError:
        return []
