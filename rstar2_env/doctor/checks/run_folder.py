"""Checks of the folder for runs: free space, and whether the clocks of its file system and this machine agree."""

from __future__ import annotations

from rstar2_env.doctor.machine import MachineState
from rstar2_env.doctor.results import DoctorResult, note, ok, problem, skipped, warning

_GB = 10**9
_LEAST, _ROOM = 5 * _GB, 100 * _GB
_APART_S = 1.0
_NETWORK = ("nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "9p", "virtiofs", "lustre", "gpfs", "ceph")
_MEMORY = ("tmpfs", "ramfs")
_THIS_YEAR = 2026


def disk(machine: MachineState) -> DoctorResult:
    """Check whether the folder for runs is on a writable disk with enough space."""
    folder = machine.folder
    if not folder.path:
        return skipped("No folder was recorded.")
    if not folder.writable:
        return problem(f"{folder.path} is not writable.", "Choose another folder with --out, or change its owner.")
    line = f"{folder.path} ({folder.filesystem or 'unknown file system'}) has {folder.free_bytes / _GB:.0f} GB free"
    if folder.free_bytes < _LEAST:
        return problem(f"{line}: the first checkpoint will not fit.", "Free disk space, or choose another --out.")
    if folder.filesystem in _MEMORY:
        return warning(
            f"{line}, and its contents are lost when the machine stops.",
            "Choose another folder with --out: this one is in memory, not on a disk.",
        )
    if folder.free_bytes < _ROOM and machine.driver.devices:
        return warning(
            f"{line}: a checkpoint of a model with 14 billion weights needs about 170 GB (float32 weights, AdamW).",
            "Choose another folder with --out, or keep fewer checkpoints (--set keep_checkpoints=1).",
        )
    if folder.filesystem in _NETWORK:
        return note(f"{line}. It is a network file system, whose bandwidth determines the duration of a checkpoint.")
    return ok(f"{line}.")


def clock(machine: MachineState) -> DoctorResult:
    """Check whether this machine's clock is right, and agrees with the clock of the file system that holds the runs."""
    folder = machine.folder
    if not folder.year:
        return skipped("No clock was recorded.")
    if folder.year < _THIS_YEAR:
        return problem(
            f"The clock shows the year {folder.year}: certificates are refused, and the times in the run are wrong.",
            "Set the clock with a time service: sudo timedatectl set-ntp true",
        )
    if abs(folder.ahead_s) > _APART_S:
        return warning(
            f"The clock of the run's folder differs from the clock of this machine by {folder.ahead_s:+.1f} s.",
            "Set the clocks of this machine and of the file server with a time service: sudo timedatectl set-ntp true",
        )
    if folder.synchronized is False:
        return note(
            "According to the kernel, no time service synchronizes the clock.",
            "With several machines, use a time service: sudo timedatectl set-ntp true",
        )
    return ok("The clock is synchronized and agrees with the clock of the run's folder.")


CHECKS = (disk, clock)
