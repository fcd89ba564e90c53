"""The layers of isolation for a long-lived program of the user: finds those that work, and applies them.

Covered: no network (a network namespace, and a filter that refuses sockets), writing only below named folders
(Landlock), a limit on processes, and no gain of privileges. Not covered: restricting which files the program can read;
and protecting the modes and times of files, which a program with the user's own id can change.
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
from ..kernel.plan import IsolationPlan
from ..kernel.users import become, count_own_tasks, enter_user_namespace, free_users, try_process_limit

_NET = linux.CLONE_NEWNET


@dataclass(slots=True)
class StdioLayers:
    """The layers of isolation that work on this machine for a program of the user.

    Attributes:
        plan: The active layers; the only namespace is that of the network.
        missing: Reason why each missing layer does not work, by the layer's short name.
    """

    plan: IsolationPlan = field(default_factory=IsolationPlan)
    missing: dict[str, str] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """Return the layers as JSON-compatible values: the plan, and the guarantees as fields of ``Capability``."""
        return {"plan": asdict(self.plan), "guarantees": self._guarantees()}

    def _guarantees(self) -> list[dict[str, Any]]:
        plan = self.plan
        kept = {
            "no network": {"network namespace": "net" in plan.namespaces, "system-call filter": plan.seccomp},
            "no writing outside of its folders": {"landlock": plan.landlock >= landlock.TRUNCATE_VERSION},
            "bounded processes": {
                "rlimit of a separate user": plan.counted,
                "rlimit of all processes of the user": plan.shared_processes > 0,
            },
        }
        # The filter is needed for sockets that have a path, which no namespace holds back.
        required = {"no network": plan.seccomp}
        return [
            {
                "name": name,
                "active": active,
                "detail": f"by {by}" if active else "; ".join(f"{n}: {why}" for n, why in self.missing.items()),
                "required": True,
            }
            for name, mechanisms in kept.items()
            for by in [", ".join(one for one, works in mechanisms.items() if works)]
            for active in [required.get(name, bool(by))]
        ]


def find(without: list[str]) -> StdioLayers:
    """Try every layer, and return those that work; ``without`` omits layers by their short names, for tests."""
    found = StdioLayers(missing=dict.fromkeys(without, "disabled by the option without"))
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
    if "net" not in missing and (error := attempt(partial(linux.unshare, base | _NET))) is not None:
        missing["net"] = error
    plan.namespaces = () if "net" in missing else ("net",)
    plan.counted = attempt(partial(try_process_limit, plan)) is None
    if not plan.counted and os.geteuid() != 0:
        plan.shared_processes = count_own_tasks()
    for name, probe in (("seccomp", _try_to_refuse_sockets), ("landlock", landlock.version)):
        if name not in missing and (error := attempt(probe)) is not None:
            missing[name] = error
    plan.seccomp = "seccomp" not in missing
    plan.landlock = landlock.version() if "landlock" not in missing else 0
    if 0 < plan.landlock < landlock.TRUNCATE_VERSION:
        missing["landlock"] = f"version {plan.landlock} does not forbid emptying files; version 3 (Linux 6.2) does"
    return found


def enter(plan: IsolationPlan, folder: str, processes: int, writable: list[str], *, network: bool) -> None:
    """Apply the layers to this process; they cannot be removed again.

    Args:
        plan: The layers that work on this machine.
        folder: The program's own temporary folder.
        processes: Maximum number of concurrent processes and threads of the program.
        writable: Other folders and files that the program may write.
        network: Whether the program may use the network.

    Raises:
        OSError: A layer of the plan does not work.
    """
    alone = 0 if network or "net" not in plan.namespaces else _NET
    if plan.user:
        _enter_as_oneself(alone)
    elif alone:
        linux.unshare(alone)
    if plan.users_from:
        user = free_users()
        os.chown(folder, user, user)
        linux.keep_capabilities(linux.CAP_DAC_OVERRIDE, partial(become, user))
    elif plan.isolated:
        linux.drop_capabilities()
    linux.no_new_privileges()
    linux.die_with_parent()
    if plan.counted or plan.shared_processes:
        most = processes if plan.counted else count_own_tasks() + processes
        with contextlib.suppress(ValueError, OSError):  # the limit in force is lower
            resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
    if plan.landlock:
        landlock.LandlockRules(["/"], plan.landlock, writable=writable, network=network).restrict(folder)
    if plan.seccomp and not network:
        _refuse_sockets()


def _refuse_sockets() -> None:
    refusing = seccomp.SeccompFilter(only_sockets=True)  # it owns the memory of the program
    linux.set_seccomp(refusing.program)


def _try_to_refuse_sockets() -> None:
    linux.no_new_privileges()
    _refuse_sockets()


def _enter_as_oneself(flags: int) -> None:
    """Create and enter a user namespace in which this process keeps its id, with more namespaces inside."""
    user, group = os.getuid(), os.getgid()
    proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY)
    linux.unshare(linux.CLONE_NEWUSER | flags)
    linux.map_user(proc, user, (user, group))
    os.close(proc)
