"""The users that programs run as: which are free, the user namespace that knows them, whether their processes count.

Covered: separate users for root, also where root has to make a user namespace to have its rights in (a container's
root), and finding out by trying whether a limit on processes holds. Not covered: changing to a user (``isolation``).
"""

from __future__ import annotations

import contextlib
import os
import resource
from typing import TYPE_CHECKING

from . import linux

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .plan import IsolationPlan

INSIDE_USER = 1000
"""The user that a program sees itself as, in a user namespace of its own."""
USERS_EACH = 512
"""User ids for each warden."""
_USERS_FROM = 0x7A000000
"""First of the user ids for programs, far from those that a machine assigns."""
_MOST_PROCESSES, _SMALL_BLOCK = 1 << 22, 8192
"""Largest number of process ids in Linux, and user ids to choose from in a container."""
_TRIED_LIMIT = 4


def free_users() -> int:
    """The first of a block of users for this warden only: the kernel counts processes by user, over all sandboxes.

    Raises:
        OSError: This process's user namespace knows too few users.
    """
    with open("/proc/self/uid_map") as file:
        for line in file:
            first, _, count = map(int, line.split())
            if first <= _USERS_FROM and first + count > _USERS_FROM + USERS_EACH * _MOST_PROCESSES:
                return _USERS_FROM + USERS_EACH * os.getpid()
            if count > _SMALL_BLOCK + USERS_EACH:  # a container's smaller range: somewhere near its end
                return first + count - USERS_EACH - os.getpid() * 16 % _SMALL_BLOCK
    raise OSError(22, "the user namespace maps too few users to give each slot its own")


def enter_user_namespace(users_from: int = 0) -> None:
    """Make a user namespace in which this process, whoever it is outside, is root, and enter it.

    Args:
        users_from: First of the block of users that shall be known inside too, by the same numbers; 0 for none. Only
            a process that may change to any user can ask for them.

    Raises:
        OSError: The kernel refuses.
    """
    user, group = os.getuid(), os.getgid()
    if users_from:
        with _mapped_from_outside(f"0 {user} 1", f"0 {group} 1", f"{users_from} {users_from} {USERS_EACH}"):
            linux.unshare(linux.CLONE_NEWUSER)
        return
    proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY)
    linux.unshare(linux.CLONE_NEWUSER)
    linux.map_user(proc, 0, (user, group))
    os.close(proc)


@contextlib.contextmanager
def _mapped_from_outside(root: str, root_group: str, block: str) -> Iterator[None]:
    """Have a process that stays outside write the maps of this one when the block is left: inside has no right to."""
    waits, go = os.pipe()
    reads, answers = os.pipe()
    owner = os.getpid()
    helper = os.fork()
    if helper == 0:
        said = b"it ended without a word"
        try:
            os.close(go)
            if os.read(waits, 1):
                for name, first in (("uid_map", root), ("gid_map", root_group)):
                    with open(f"/proc/{owner}/{name}", "w") as file:
                        file.write(f"{first}\n{block}\n")
                said = b""
        except OSError as error:
            said = str(error).encode()
        finally:
            os.write(answers, said)
            os._exit(0)
    os.close(waits)
    os.close(answers)
    try:
        yield
        os.write(go, b"1")
    finally:
        os.close(go)
        with os.fdopen(reads, "rb") as file:
            failure = file.read().decode()
        os.waitpid(helper, 0)
    if failure:
        raise OSError(1, f"the users of a user namespace could not be mapped: {failure}")


def become(user: int) -> None:
    """Change to a separate user for good, without any other group."""
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def nest(proc: int) -> None:
    """Enter a user namespace of this process's own, without any capability: some kernels count processes for each.

    Args:
        proc: Descriptor of a ``/proc`` in which this process can be seen.
    """
    linux.set_dumpable(True)  # to write the user and group maps
    linux.unshare(linux.CLONE_NEWUSER)
    linux.map_user(proc, INSIDE_USER, (0, 0))
    linux.drop_bounding_capabilities()  # a new user namespace begins with all of them
    linux.drop_capabilities()


def try_process_limit(plan: IsolationPlan) -> None:
    """Become what a program will be, and see whether the kernel holds a limit on processes for it, and for it alone.

    It never does for the machine's user 0, whatever namespace that user is in and whatever it may do; and before Linux
    5.14 it counts an ordinary user's programs together with everything else of that user. Call it in a process that
    ends afterwards.

    Raises:
        OSError: It does not; the message says how.
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
        raise OSError(1, "the kernel lets the user of programs pass a limit on processes")
    if made < _TRIED_LIMIT - 1:
        raise OSError(1, "the kernel counts programs together with other processes of the user")


def _fork_many(most: int) -> int:
    """How many processes can be there at once, beside this one, up to ``most``."""
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
