"""Checks of where runs are written: the disk, and the clock."""

from __future__ import annotations

from rstar2_env.doctor.finding import CheckResult, note, ok, problem, skipped, warning
from rstar2_env.doctor.machine import MachineState

_GB = 10**9
_LEAST, _ROOM = 5 * _GB, 100 * _GB
_APART_S = 1.0
_NETWORK = ("nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "9p", "virtiofs", "lustre", "gpfs", "ceph")
_MEMORY = ("tmpfs", "ramfs")
_THIS_YEAR = 2026


def disk(machine: MachineState) -> CheckResult:
    """The disk of the run's folder."""
    folder = machine.folder
    if not folder.path:
        return skipped("No folder was looked at.")
    if not folder.writable:
        return problem(f"{folder.path} cannot be written.", "Choose another folder with --out, or change its owner.")
    line = f"{folder.path} ({folder.filesystem or 'unknown file system'}) has {folder.free_bytes / _GB:.0f} GB free"
    if folder.free_bytes < _LEAST:
        return problem(f"{line}: the first checkpoint will not fit.", "Free some, or choose another folder with --out.")
    if folder.filesystem in _MEMORY:
        return warning(f"{line}, and is lost when the machine stops.", "Choose a folder on a disk with --out.")
    if folder.free_bytes < _ROOM and machine.driver.devices:
        return warning(
            f"{line}: a checkpoint of a model of 14 billion weights takes about 170 GB (float32 weights, AdamW).",
            "Choose another folder with --out, or keep fewer checkpoints (--set keep_checkpoints=1).",
        )
    if folder.filesystem in _NETWORK:
        return note(f"{line}. It is a network file system: checkpoints take as long as it takes to send them.")
    return ok(f"{line}.")


def clock(machine: MachineState) -> CheckResult:
    """The clock, and that of the run's folder."""
    folder = machine.folder
    if not folder.year:
        return skipped("No clock was looked at.")
    if folder.year < _THIS_YEAR:
        return problem(
            f"The clock shows the year {folder.year}: certificates are refused, and the times in the run are wrong.",
            "Set it: sudo timedatectl set-ntp true",
        )
    if abs(folder.ahead_s) > _APART_S:
        return warning(
            f"The clock of the run's folder is {folder.ahead_s:+.1f} s from this machine's.",
            "Let a time service keep both: sudo timedatectl set-ntp true",
        )
    if folder.synchronized is False:
        return note(
            "No time service keeps the clock, as far as the kernel knows.",
            "With several machines, let one keep them: sudo timedatectl set-ntp true",
        )
    return ok("The clock is kept, and that of the run's folder agrees.")


CHECKS = (disk, clock)
