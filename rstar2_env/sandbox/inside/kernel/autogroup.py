"""Checks whether the kernel's autogroup gives each program (which has its own ``setsid`` session) a share of the cores.

Autogroup acts only if the setting ``kernel.sched_autogroup_enabled`` is 1, and only on processes in the root group of
the cpu controller. Covered: both versions of control groups. If a container hides the groups above its own, the answer
is that autogroup does not act. Not covered: changes after the check.
"""

from __future__ import annotations

import os

from . import cgroups

_SETTING = "/proc/sys/kernel/sched_autogroup_enabled"


def why_inactive(programs: str | None = None) -> str:
    """Return why autogroup does not act on programs; empty if it does.

    Args:
        programs: The folder of the version 2 control group in which programs run; ``None`` if they run in the group of
            this process.
    """
    try:
        with open(_SETTING) as file:
            enabled = file.read().strip() == "1"
    except OSError:
        return "this kernel does not have autogroup"
    if not enabled:
        return "kernel.sched_autogroup_enabled is not 1"
    if not _in_root_group(programs):
        return "programs run in a control group of the cpu controller, or in a container that hides this"
    return ""


def _in_root_group(programs: str | None) -> bool:
    """Whether programs run in the root group of the cpu controller."""
    own = None
    for line in cgroups.own_groups():
        _, names, path = line.split(":", 2)
        if "cpu" in names.split(","):
            # In version 1, only the root group has this file.
            return os.path.exists(os.path.join(cgroups.folder_of_version_1(names, path), "release_agent"))
        if not names:
            own = path
    mount = next((folder for kind, folder in cgroups.mounts() if kind == "cgroup2"), None)
    if mount is None or own is None:
        return False
    folder = programs or os.path.normpath(f"{mount}/{own}")
    # Without a group of the cpu controller, a process is in the nearest group above that has one.
    while folder != mount:
        if not os.path.isdir(folder) or os.path.exists(os.path.join(folder, "cpu.weight")):
            return False
        folder = os.path.dirname(folder)
        if len(folder) < len(mount):
            return False
    # Only the root group lacks this file; in a container, the mounted folder may be another group.
    return not os.path.exists(os.path.join(mount, "cgroup.events"))
