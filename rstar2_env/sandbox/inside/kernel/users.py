"""Chooses the users that programs run as: free user ids, user namespaces, and the kernel's limit on a user's processes.

Covered: separate users for programs if this process is root, also in a container, where root needs a user namespace to
have the necessary rights; and a trial of the limit on processes. Not covered: the change of a child's user
(``isolation``).
"""

from __future__ import annotations

import contextlib
import os
import resource
from typing import TYPE_CHECKING

from . import linux
from .attempt import read_report, run_and_report

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .plan import IsolationPlan

INSIDE_USER = 1000
"""User id of a program inside its own user namespace."""
USERS_EACH = 512
"""Number of user ids that each warden uses."""
_USERS_FROM = 0x7A000000
"""First user id for programs, far from ids that machines assign."""
_MOST_PROCESSES, _BLOCKS, _LEAST_BLOCKS = 1 << 22, 64, 8
"""Upper bound of process ids in Linux; largest and smallest number of blocks of user ids in a container."""
_TRIED_LIMIT = 4


def free_users() -> int:
    """Return the first id of a block of ``USERS_EACH`` user ids for this warden.

    The kernel counts the processes of a user over all sandboxes, so wardens should not share user ids. In a container
    with few user ids, the upper half of these ids is divided into at most ``_BLOCKS`` blocks, and two wardens share a
    block if their process ids are equal modulo the number of blocks.

    Raises:
        OSError: The user namespace of this process maps too few users.
    """
    with open("/proc/self/uid_map") as file:
        for line in file:
            first, _, count = map(int, line.split())
            if first <= _USERS_FROM and first + count > _USERS_FROM + USERS_EACH * _MOST_PROCESSES:
                return _USERS_FROM + USERS_EACH * os.getpid()
            blocks = min(_BLOCKS, count // USERS_EACH // 2)
            if blocks >= _LEAST_BLOCKS:
                return first + count - USERS_EACH * (1 + os.getpid() % blocks)
    raise OSError(22, "the user namespace maps too few users to run each program as its own user")


def enter_user_namespace(users_from: int = 0, *, inside: int = 0, also: int = 0) -> None:
    """Create and enter a user namespace, with a block of mapped user ids or with a single id.

    Args:
        users_from: First of a block of user ids that are the same in the new namespace; this process becomes root in
            the namespace. 0 for no block. A block requires the right to change to any user.
        inside: Id of this process's user and group in the new namespace; not used with a block of ids.
        also: Clone flags of more namespaces that belong to the new user namespace; not used with a block of ids.

    Raises:
        OSError: The kernel does not allow a user namespace.
    """
    user, group = os.getuid(), os.getgid()
    if users_from:
        with _mapped_from_outside(f"0 {user} 1", f"0 {group} 1", f"{users_from} {users_from} {USERS_EACH}"):
            linux.unshare(linux.CLONE_NEWUSER)
        return
    proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY)
    linux.unshare(linux.CLONE_NEWUSER | also)
    linux.map_user(proc, inside, (user, group))
    os.close(proc)


@contextlib.contextmanager
def _mapped_from_outside(root: str, root_group: str, block: str) -> Iterator[None]:
    """At the end of the context, write the user maps of this process from outside its new user namespace.

    A forked process writes the maps, since this process does not have the right to do so.

    Args:
        root: Line of ``uid_map`` for the user that becomes root.
        root_group: Line of ``gid_map`` for the group that becomes root's.
        block: Second line of ``uid_map`` and of ``gid_map``, for the ids of programs.
    """
    waits, go = os.pipe()
    reads, answers = os.pipe()
    owner = os.getpid()

    def write_maps() -> None:
        os.close(go)
        if os.read(waits, 1):
            for name, first in (("uid_map", root), ("gid_map", root_group)):
                with open(f"/proc/{owner}/{name}", "w") as file:
                    file.write(f"{first}\n{block}\n")

    helper = os.fork()
    if helper == 0:
        run_and_report(write_maps, answers)
    os.close(waits)
    os.close(answers)
    try:
        yield
        os.write(go, b"1")
    finally:
        os.close(go)
        failure = read_report(reads, helper)
    if failure is not None:
        raise OSError(1, f"the users of the user namespace could not be mapped: {failure}")


def become(user: int) -> None:
    """Permanently change this process to another user, without supplementary groups."""
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def nest(proc: int) -> None:
    """Enter a new user namespace, since some kernels count processes per user namespace; drop all capabilities.

    Args:
        proc: Descriptor of a ``/proc`` that contains this process.
    """
    linux.set_dumpable(True)  # to write the user and group maps
    linux.unshare(linux.CLONE_NEWUSER)
    linux.map_user(proc, INSIDE_USER, (0, 0))
    linux.drop_bounding_capabilities()  # a new user namespace starts with all capabilities
    linux.drop_capabilities()


def try_process_limit(plan: IsolationPlan) -> None:
    """Change to the user of a program, and check that the kernel limits only the processes of that user.

    The kernel never limits the processes of the machine's user 0. Before Linux 5.14, it counts the programs of an
    ordinary user together with all other processes of that user. Call this function in a process that ends afterwards.

    Raises:
        OSError: The kernel does not enforce the limit; the message gives the reason.
    """
    if not plan.own_user:
        raise OSError(1, "programs run as the caller's own user")
    if plan.user:
        enter_user_namespace(plan.users_from)
    if plan.users_from:
        become(plan.users_from + USERS_EACH - 1)
    else:
        nest(os.open("/proc", os.O_RDONLY | os.O_DIRECTORY))
    resource.setrlimit(resource.RLIMIT_NPROC, (_TRIED_LIMIT, _TRIED_LIMIT))
    made = _fork_many(2 * _TRIED_LIMIT)
    if made >= _TRIED_LIMIT:
        raise OSError(1, "the kernel does not limit the number of processes of the user that runs programs")
    if made < _TRIED_LIMIT - 1:
        raise OSError(
            1,
            "the kernel counts all processes of the user towards the limit, not only those of the sandbox's programs",
        )


def count_own_tasks() -> int:
    """Return the number of processes and threads of this process's user."""
    count = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.stat(f"/proc/{pid}").st_uid == os.geteuid():
                count += len(os.listdir(f"/proc/{pid}/task"))
        except OSError:  # the process has ended
            continue
    return count


def _fork_many(most: int) -> int:
    """Fork up to ``most`` processes; return how many existed at the same time, not counting this process."""
    waits, held = os.pipe()
    pids = []
    with contextlib.suppress(OSError):
        for _ in range(most):
            pid = os.fork()
            if pid == 0:
                os.close(held)
                os.read(waits, 1)
                os._exit(0)
            pids.append(pid)
    os.close(held)
    for pid in pids:
        os.waitpid(pid, 0)
    os.close(waits)
    return len(pids)
