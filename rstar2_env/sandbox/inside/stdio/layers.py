"""The layers of isolation for a long-lived program of the user: finds those that work, and applies them.

The layers block the network (a network namespace, and a filter that refuses sockets), writes outside of named folders
(Landlock), signals to other processes and memory shared with them, and any gain of privileges. They also limit the
number of the program's processes, and end all of them with the program. Not covered: which files the program can read;
the modes and times of files, which a program with the user's own id can change.
"""

from __future__ import annotations

import contextlib
import os
import resource
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from ..kernel import landlock, linux, seccomp
from ..kernel.attempt import attempt
from ..kernel.plan import NAMESPACES, SCOPED, IsolationPlan
from ..kernel.users import become, count_own_tasks, enter_user_namespace, free_users, try_process_limit

_SPACES = ("net", "ipc", "pid")


@dataclass(slots=True)
class StdioLayers:
    """The layers of isolation that work on this machine for a program of the user.

    Attributes:
        plan: The active layers; ``mount`` among the namespaces means that the program has its own ``/proc``.
        missing: Reason why each missing layer does not work, by the layer's short name.
        subreaper: Whether the keeper of a program becomes the parent of the program's orphaned processes.
    """

    plan: IsolationPlan = field(default_factory=IsolationPlan)
    missing: dict[str, str] = field(default_factory=dict)
    subreaper: bool = False

    def record(self) -> dict[str, Any]:
        """Return the layers as JSON-compatible values: the plan, and the guarantees as fields of ``Capability``."""
        return {"plan": asdict(self.plan), "guarantees": self._guarantees()}

    def _guarantees(self) -> list[dict[str, Any]]:
        plan = self.plan
        net, ipc, pid = ({NAMESPACES[name][0]: name in plan.namespaces} for name in _SPACES)
        own = {"separate user": plan.users_from > 0}
        # Without the filter, a program could lower another process's CPU limit, and so make the kernel send a signal.
        scope = {"landlock's scope and system-call filter": plan.scoped and plan.seccomp}
        refused = {"system-call filter": plan.seccomp}
        signals = any((pid | own | scope).values())
        reach = ("pid", "users", "user", "scope", "seccomp")
        return [
            # Only the filter blocks sockets that have a path; a network namespace does not.
            self._guarantee("no network", net | refused, ("net", "seccomp"), plan.seccomp),
            self._guarantee(
                "no writing outside of its folders",
                {"landlock": plan.landlock >= landlock.TRUNCATE_VERSION},
                ("landlock",),
            ),
            self._guarantee(
                "bounded processes",
                {
                    "rlimit of a separate user": plan.counted,
                    "rlimit of all processes of the user": plan.shared_processes > 0,
                },
                ("users", "user", "limit"),
            ),
            self._guarantee("no signals to other processes", pid | own | scope, reach),
            self._guarantee("no memory shared with others", ipc | own | refused, ("ipc", "users", "user", "seccomp")),
            # A program that can send signals to its keeper could kill it.
            self._guarantee(
                "no leftover processes",
                pid | {"keeper that becomes the parent of orphans": self.subreaper and signals},
                ("pid", "subreaper", "scope", "seccomp"),
            ),
        ]

    def _guarantee(
        self, name: str, mechanisms: dict[str, bool], causes: tuple[str, ...], held: bool | None = None
    ) -> dict[str, Any]:
        """Describe a guarantee with the fields of ``Capability``.

        Args:
            name: Name of the guarantee.
            mechanisms: Whether each mechanism works, by its name.
            causes: Short names of the layers whose absence explains why the guarantee is missing.
            held: Whether the guarantee is active; ``None`` if any working mechanism makes it active.
        """
        by = [mechanism for mechanism, works in mechanisms.items() if works]
        active = bool(by) if held is None else held
        why = "; ".join(f"{cause}: {self.missing[cause]}" for cause in causes if cause in self.missing)
        detail = f"by {', '.join(by)}" if active else why or "not in force"
        return {"name": name, "active": active, "detail": detail, "required": True}


def find(without: list[str]) -> StdioLayers:
    """Try every layer, and return those that work; ``without`` omits layers by their short names, for tests."""
    found = StdioLayers(missing=dict.fromkeys(without, "the option `without` disables it"))
    plan, missing = found.plan, found.missing
    if os.geteuid() == 0:
        if "users" not in missing and (error := attempt(lambda: become(free_users()))) is not None:
            missing["users"] = error
        plan.users_from = 0 if "users" in missing else free_users()
    else:
        if "user" not in missing and (error := attempt(enter_user_namespace)) is not None:
            missing["user"] = error
        plan.user = "user" not in missing
    base = linux.CLONE_NEWUSER if plan.user else 0
    for name in _SPACES:
        if name not in missing and (error := attempt(partial(linux.unshare, base | NAMESPACES[name][1]))) is not None:
            missing[name] = error
    plan.namespaces = tuple(name for name in _SPACES if name not in missing)
    if "pid" in plan.namespaces and "mount" not in missing:
        if (error := attempt(partial(_try_own_proc, plan))) is not None:
            missing["mount"] = error
        else:
            plan.namespaces += ("mount",)
    if (error := attempt(partial(try_process_limit, plan))) is not None:
        missing["limit"] = error
        plan.shared_processes = count_own_tasks() if os.geteuid() != 0 else 0
    plan.counted = error is None
    for name, probe in (("seccomp", _try_to_refuse), ("landlock", landlock.version)):
        if name not in missing and (error := attempt(probe)) is not None:
            missing[name] = error
    plan.seccomp = "seccomp" not in missing
    plan.landlock = landlock.version() if "landlock" not in missing else 0
    if "scope" in missing:
        plan.landlock = min(plan.landlock, SCOPED - 1)
    elif not plan.scoped:
        older = f"version {plan.landlock} of Landlock cannot block signals; version {SCOPED} (Linux 6.12) can"
        missing["scope"] = missing.get("landlock", older)
    if 0 < plan.landlock < landlock.TRUNCATE_VERSION:
        missing["landlock"] = (
            f"version {plan.landlock} of Landlock cannot prevent programs from emptying files; "
            "version 3 (Linux 6.2) can"
        )
    if "subreaper" not in missing and (error := attempt(_try_to_keep)) is not None:
        missing["subreaper"] = error
    found.subreaper = "subreaper" not in missing
    return found


def most_processes(plan: IsolationPlan, processes: int) -> int:
    """Return the RLIMIT_NPROC that allows a program ``processes`` processes; 0 for no limit.

    Call this in the keeper, the parent process of the program.
    """
    first = int("pid" in plan.namespaces)
    if plan.counted:
        return processes + (1 + first if plan.user else 0)  # the keeper and the first process are in its namespace
    return count_own_tasks() + first + processes if plan.shared_processes else 0


def separate(plan: IsolationPlan, *, network: bool) -> None:
    """Move this process to new namespaces; its next child becomes the first process of the process namespace, if any.

    Args:
        plan: The layers that work on this machine.
        network: Whether the program may use the network.

    Raises:
        OSError: A layer of the plan does not work.
    """
    flags = plan.flags(*(name for name in _SPACES if not (network and name == "net")))
    if plan.user:
        enter_user_namespace(inside=os.getuid(), also=flags)
    elif flags:
        linux.unshare(flags)


def mount_own_proc() -> None:
    """In the first process of a process namespace, mount a ``/proc`` that shows only this namespace."""
    linux.unshare(linux.CLONE_NEWNS)
    linux.mount("none", "/", None, linux.MS_REC | linux.MS_SLAVE)
    linux.mount("proc", "/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)


def enter(plan: IsolationPlan, folder: str, user: int, most: int, writable: list[str], *, network: bool) -> None:
    """Apply all layers except the namespaces to this process, irrevocably.

    Args:
        plan: The layers that work on this machine.
        folder: The program's own temporary folder.
        user: Id of the program's separate user; 0 for none.
        most: The rlimit on processes; 0 for none.
        writable: Other folders and files that the program may write.
        network: Whether the program may use the network.

    Raises:
        OSError: A layer of the plan does not work.
    """
    if user:
        os.chown(folder, user, user)
        linux.keep_capabilities(linux.CAP_DAC_OVERRIDE, partial(become, user))
    elif plan.isolated:
        linux.drop_capabilities()
    linux.no_new_privileges()
    linux.die_with_parent()  # again, since a change of user clears this setting
    if most:
        with contextlib.suppress(ValueError, OSError):  # the limit in force is lower
            resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
    if plan.landlock:
        landlock.LandlockRules(["/"], plan.landlock, writable=writable, network=network).restrict(folder)
    refused = [] if network else ["sockets"]
    if "ipc" not in plan.namespaces and not user:
        refused.append("ipc")
    if "pid" not in plan.namespaces and not user:
        refused.append("limits")
    if plan.seccomp and refused:
        _refuse(*refused)


def _refuse(*kinds: str) -> None:
    refusing = seccomp.SeccompFilter(only=kinds)  # it owns the memory of the program
    linux.set_seccomp(refusing.program)


def _try_to_refuse() -> None:
    linux.no_new_privileges()
    _refuse("sockets", "ipc", "limits")


def _try_own_proc(plan: IsolationPlan) -> None:
    separate(plan, network=True)
    if (error := attempt(mount_own_proc)) is not None:
        raise OSError(0, error)


def _try_to_keep() -> None:
    if not linux.become_subreaper():
        raise OSError(0, "the kernel has no subreapers")
    if not os.path.exists(f"/proc/self/task/{os.getpid()}/children"):
        raise OSError(0, "the kernel does not list the children of a process")
