"""Finds the layers of isolation that this machine supports, by trying each one, and plans their use.

Covered: the trials, the plan for the zygote and its child processes, and the result of ``capabilities()``: first the
guarantees (with their mechanisms), then the mechanisms themselves. Not covered: how layers are applied (``isolation``).
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from . import autogroup, landlock, linux, seccomp
from .attempt import attempt
from .cgroups import ControlGroups
from .packages import EVERYTHING
from .plan import NAMESPACES, SCOPED, IsolationPlan
from .users import INSIDE_USER, become, count_own_tasks, enter_user_namespace, free_users, try_process_limit
from .view import FOLDER, FileView, build, link, plain_view, private_view

_MARGIN = 512
_WATCH_ALONE = "a watch alone, which polls the number of processes and ends a program that has too many"
_TITLES = {
    "user": "user namespace",
    "users": "own users",
    "seccomp": "system-call filter",
    "landlock": "landlock",
    "cgroups": "control groups",
}


@dataclass(slots=True)
class Layers:
    """The isolation of programs on this machine: plan, visible files, control groups, reasons for missing layers."""

    plan: IsolationPlan
    view: FileView
    groups: ControlGroups | None = None
    missing: dict[str, str] = field(default_factory=dict)

    def capabilities(self) -> list[dict[str, Any]]:
        """Return the guarantees, then the limits on kernel resources that programs share, then the mechanisms."""
        return [*self._promises(), *self._shares(), *self._mechanisms()]

    def broken(self) -> list[str]:
        """Return the names of the guarantees that no mechanism provides on this machine."""
        return [f"{layer['name']} ({layer['detail']})" for layer in self._promises() if not layer["active"]]

    def _promises(self) -> list[dict[str, Any]]:
        plan, spaces = self.plan, self.plan.namespaces
        grouped = self.groups.controllers if self.groups is not None else ()
        pinned = plan.seccomp and plan.landlock > 0
        counted_late = plan.isolated and not plan.counted and "pids" not in grouped
        # The zygote needs this file to find a process tree.
        watched = os.path.exists(f"/proc/self/task/{os.getpid()}/children")
        kept: dict[str, dict[str, bool]] = {
            "no network": {"network namespace": "net" in spaces, "system-call filter": plan.seccomp},
            "no access to other processes": {
                "process namespace": "pid" in spaces,
                "system-call filter and landlock": pinned,
            },
            "no access to the user's files": {
                "mount namespace": "mount" in spaces,
                "landlock": plan.landlock > 0 and (plan.own_user or plan.seccomp),
            },
            "no privilege escalation": {"no_new_privs and no capabilities": plan.isolated},
            "bounded time": {"the clock of the supervising process": True, "rlimit": True},
            "bounded memory": {
                "memory control group": "memory" in grouped,
                "rlimit and a watch that polls the memory": "memory" not in grouped and plan.isolated and watched,
            },
            "bounded processes": {
                "pids control group": "pids" in grouped,
                "rlimit of a separate user": plan.counted,
                "rlimit and a watch that polls the number of processes": watched
                and counted_late
                and plan.shared_processes > 0,
                _WATCH_ALONE: watched and counted_late and not plan.shared_processes,
            },
            "bounded output": {"the supervising process, which stops reading at the limit": True},
            "no leftover processes": {
                "process namespace": "pid" in spaces,
                "the process group, which the system-call filter prevents processes from leaving": plan.seccomp,
            },
        }
        return [self._promise(name, mechanisms) for name, mechanisms in kept.items()]

    def _promise(self, name: str, mechanisms: dict[str, bool]) -> dict[str, Any]:
        """Describe a guarantee; it is active if any of its mechanisms is active."""
        by = [mechanism for mechanism, active in mechanisms.items() if active]
        return _layer(name, bool(by), "by " + ", ".join(by) if by else self._why(name), required=True)

    def _why(self, promise: str) -> str:
        causes = {
            "no network": ("net", "seccomp"),
            "no access to other processes": ("pid", "seccomp", "landlock"),
            "no access to the user's files": ("mount", "landlock", "seccomp"),
            "no leftover processes": ("pid", "seccomp"),
        }.get(promise, ())
        reasons = [f"{_title(name)}: {self.missing[name]}" for name in causes if name in self.missing]
        return "; ".join(reasons) or "not in force"

    def _shares(self) -> list[dict[str, Any]]:
        """Describe the limits on kernel resources that programs share, with the fields of ``Capability``.

        The detail of a missing limit states what replaces it.
        """
        plan = self.plan
        filtered = f"{_title('seccomp')}: {self.missing.get('seccomp', 'not in force')}"
        grouped = (
            "a watch polls the memory: it counts each socket at its maximum size, and does not count other "
            "kernel memory"
        )
        alone = "programs run as the caller's own user, and a watch ends a program with too many pipes"
        weighed = self.groups is not None and "cpu" in self.groups.controllers
        fair = plan.seccomp and "autogroup" not in self.missing
        unfair = f"autogroup: {self.missing.get('autogroup')}; each process gets its own share of the cores"
        return [
            _layer(
                "one share of the cores",
                weighed or fair,
                "cpu control group"
                if weighed
                else "autogroup gives each session one share of the cores, and the system-call filter prevents new "
                "sessions"
                if fair
                else (unfair if plan.seccomp else filtered),
            ),
            _layer(
                "counted kernel memory",
                plan.seccomp and plan.memory_group,
                "memory control group; system-call filter: no file locks, no memory policies"
                if plan.seccomp and plan.memory_group
                else (grouped if plan.seccomp else filtered),
            ),
            _layer(
                "own pipes and signals",
                plan.users_from > 0,
                "a separate user for each slot" if plan.users_from else (alone if plan.isolated else "switched off"),
            ),
        ]

    def _mechanisms(self) -> list[dict[str, Any]]:
        plan, groups = self.plan, self.groups
        found = {
            "user": (plan.user, "the other namespaces are created in this namespace" if plan.user else ""),
            **{name: (name in plan.namespaces, "") for name in NAMESPACES},
            "users": (plan.users_from > 0, f"a separate user for each slot, with ids from {plan.users_from}"),
            "seccomp": (plan.seccomp, ""),
            "landlock": (plan.landlock > 0, f"version {plan.landlock}"),
            "cgroups": (False, ""),
        }
        if groups is not None:
            found["cgroups"] = (True, f"version {groups.version}: {', '.join(groups.controllers)}")
        return [
            _layer(_title(name), active, detail if active else self.missing.get(name, "not needed"))
            for name, (active, detail) in found.items()
        ]


def find(options: dict[str, Any]) -> Layers:
    """Try every layer of isolation, and return those that work, with a plan of their use.

    Args:
        options: The warden's options: ``isolation`` (the mode), ``without`` (short names of layers to omit),
            ``packages`` (that programs can import), ``site_dirs`` (folders of installed packages), ``readable`` (more
            paths that programs can read), ``root_folders`` (see ``FileView``), ``scratch`` (the warden's folder).
    """
    named = None if options["isolation"] == "none" or EVERYTHING in options["packages"] else options["packages"]
    plain = partial(plain_view, options["site_dirs"], options["readable"], named, options["scratch"])
    if options["isolation"] == "none":
        off = dict.fromkeys([*NAMESPACES, "user", "users", "seccomp", "landlock", "cgroups"], "switched off")
        return Layers(IsolationPlan(isolated=False), plain(), missing=off)
    without: list[str] = options["without"]
    missing = dict.fromkeys(without, "the option `without` disables it")
    groups = _groups(missing)
    unified = groups.unified if groups is not None else None
    if "autogroup" not in missing and (reason := autogroup.why_inactive(unified)):
        missing["autogroup"] = reason
    if "autogroup" in missing and groups is not None and (reason := groups.share_cores()):
        missing["autogroup"] += f"; {reason}"
    plan = IsolationPlan(memory_group=groups is not None and "memory" in groups.controllers)
    _find_namespaces(plan, missing)
    view: FileView | None = None
    if "mount" in plan.namespaces:
        try:
            view = private_view(options["site_dirs"], options["readable"], named, options["root_folders"])
            failure = attempt(partial(_rehearse, plan, view, options["scratch"]))
        except OSError as error:
            failure = str(error)
        if failure is not None:
            missing["mount"], view = failure, None
            plan.namespaces = tuple(name for name in plan.namespaces if name != "mount")
    if "mount" not in plan.namespaces and "pid" in plan.namespaces:
        # Otherwise /proc would show processes of another namespace, and the zygote would watch those.
        missing["pid"] = "it needs a mount namespace, to mount its own /proc"
        plan.namespaces = tuple(name for name in plan.namespaces if name != "pid")
    if view is None:
        view = plain()
        link(view)
    if os.geteuid() == 0:
        _find_users(plan, view, missing)
    plan.counted = attempt(partial(try_process_limit, plan)) is None
    for name, probe in (("seccomp", seccomp.SeccompFilter), ("landlock", landlock.version)):
        if name not in missing and (failure := attempt(probe)) is not None:
            missing[name] = failure
    plan.seccomp = "seccomp" not in missing
    if "landlock" not in missing:
        # The short name "scope" simulates an older kernel, for tests, as "autogroup" does.
        plan.landlock = landlock.version() if "scope" not in missing else min(landlock.version(), SCOPED - 1)
    if not plan.counted and os.geteuid() != 0:
        plan.shared_processes = count_own_tasks() + _MARGIN
    return Layers(plan, view, groups, missing)


def _groups(missing: dict[str, str]) -> ControlGroups | None:
    if "cgroups" in missing:
        return None
    try:
        return ControlGroups()
    except OSError as error:
        missing["cgroups"] = str(error)
        return None


def _find_namespaces(plan: IsolationPlan, missing: dict[str, str]) -> None:
    """Record in ``plan`` which namespaces can be created, and in ``missing`` why the others cannot.

    An ordinary user can create most of them only inside a user namespace.
    """
    if attempt(lambda: linux.unshare(linux.CLONE_NEWNS)) is not None:
        error = missing.get("user") or attempt(enter_user_namespace)
        if error is not None:
            missing["user"] = error
        plan.user = error is None
    if not linux.has_pidfds():
        missing.setdefault("pid", "this kernel does not support pidfds")
    base = linux.CLONE_NEWUSER if plan.user else 0
    for name, (_, flag) in NAMESPACES.items():
        if name not in missing and (error := attempt(partial(linux.unshare, base | flag))) is not None:
            missing[name] = error
    plan.namespaces = tuple(name for name in NAMESPACES if name not in missing)


def _find_users(plan: IsolationPlan, view: FileView, missing: dict[str, str]) -> None:
    """Record in ``plan`` the first of the user ids for programs, or in ``missing`` why there are no such ids."""
    if "users" in missing:
        return
    try:
        first = free_users()
    except OSError as error:
        missing["users"] = str(error)
        return
    library = os.path.join(os.path.realpath(sys.base_prefix), "lib")

    def look() -> None:
        if plan.user:
            enter_user_namespace(first)
        become(first)
        if view.launch.startswith(FOLDER) and not os.access(library, os.R_OK | os.X_OK):
            raise OSError(
                13,
                f"other users cannot read {library}, and without a mount namespace it cannot be made visible to them",
            )

    failure = attempt(look)
    if failure is not None:
        missing["users"] = failure
    else:
        plan.users_from = first


def _rehearse(plan: IsolationPlan, view: FileView, scratch: str) -> None:
    """Check that a child's private file system can be built and mounted, by a trial in a forked process."""
    if plan.user:
        enter_user_namespace()
    if "pid" in plan.namespaces:
        linux.unshare(linux.CLONE_NEWPID)
    error = attempt(lambda: _build_and_mount(plan, view, scratch))
    if error is not None:
        raise OSError(0, error)


def _build_and_mount(plan: IsolationPlan, view: FileView, scratch: str) -> None:
    linux.unshare(plan.flags("mount", "net", "ipc", "uts", "cgroup"))
    build(view, os.path.join(scratch, "root"), INSIDE_USER)
    linux.mount("tmpfs", "/tmp", "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "size=1m")
    if not os.access(view.python, os.X_OK):
        raise OSError(
            2, f"the Python interpreter cannot be found at {view.python} in the program's private view of the files"
        )


def _layer(name: str, active: bool, detail: str, required: bool = False) -> dict[str, Any]:
    """Describe a layer with the fields of ``Capability``."""
    return {"name": name, "active": active, "detail": detail, "required": required}


def _title(name: str) -> str:
    return _TITLES.get(name) or NAMESPACES[name][0]
