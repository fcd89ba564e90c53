"""Checks of the host and the container: shared memory, user limits, control groups, the sandbox."""

from __future__ import annotations

from rstar2_env.doctor.machine import MachineState
from rstar2_env.doctor.results import DoctorResult, note, ok, problem, skipped, warning

_GIB = 1 << 30
_SHM = 8 * _GIB
"""Minimum shared memory for RCCL, vLLM's workers and weights in /dev/shm; AMD's examples use 8 to 128 GiB."""
_FILES = 4096
_STACK = 64 << 20
_PROCESSES = 4096


def shared_memory(machine: MachineState) -> DoctorResult:
    """Check whether shared memory, through which processes of one machine exchange tensors, is large enough."""
    size = machine.bounds.shm_bytes
    if not size:
        return skipped("The folder /dev/shm (shared memory) does not exist.")
    if size >= _SHM:
        return ok(f"/dev/shm has {_bytes(size)}.")
    line = f"/dev/shm has {_bytes(size)}"
    if not machine.driver.devices:
        return note(f"{line}: enough for one process on a CPU.")
    fix = "Start the container with --ipc=host, or with --shm-size 64g."
    if not machine.system.container:
        fix = "sudo mount -o remount,size=64G /dev/shm"
    return problem(f"{line}: RCCL and vLLM's workers fail with 'no space left' or a bus error.", fix)


def user_limits(machine: MachineState) -> DoctorResult:
    """Check whether the user limits on open files, locked memory, stack and processes are high enough."""
    bounds = machine.bounds
    low = []
    if 0 <= bounds.files < _FILES:
        low.append(f"{bounds.files} open files (a step can use hundreds of environments and connections)")
    if 0 <= bounds.processes < _PROCESSES:
        low.append(f"{bounds.processes} processes")
    if len(machine.driver.devices) > 1:
        if bounds.locked_bytes >= 0:
            low.append(f"{_bytes(bounds.locked_bytes)} of locked memory (RCCL over a network registers more)")
        if 0 <= bounds.stack_bytes < _STACK:
            low.append(f"a stack of {_bytes(bounds.stack_bytes)}")
    if not low:
        return ok("The limits on open files, locked memory, stack and processes are sufficient.")
    fix = "In /etc/security/limits.conf, or before the run: ulimit -n 1048576 -u unlimited -l unlimited -s 65536"
    if machine.system.container:
        fix = "docker run --ulimit nofile=1048576 --ulimit memlock=-1 --ulimit stack=67108864 --pids-limit -1"
    return warning(f"Low limits: {'; '.join(low)}.", fix)


def control_groups(machine: MachineState) -> DoctorResult:
    """Check whether the control group allows less memory, fewer cores or fewer processes than the machine has."""
    bounds, system = machine.bounds, machine.system
    if not bounds.cgroup:
        return note("Control groups are not available: the sandbox limits memory by other means.")
    held = []
    if 0 <= bounds.cgroup_memory_bytes < system.memory_bytes:
        held.append(f"{_bytes(bounds.cgroup_memory_bytes)} of memory")
    if 0 < bounds.cgroup_cpus < system.cpus:
        held.append(f"{bounds.cgroup_cpus:g} of {system.cpus} cores")
    if 0 <= bounds.cgroup_pids < _PROCESSES:
        held.append(f"{bounds.cgroup_pids} processes")
    line = f"Control groups of version {bounds.cgroup}"
    if not held:
        return ok(f"{line}, without limits for this process.")
    return note(
        f"{line} limit this process to {', '.join(held)}.",
        "Raise the limits of the container (--memory, --cpus, --pids-limit) if the run needs more.",
    )


def sandbox_layers(machine: MachineState) -> DoctorResult:
    """Check whether the local sandbox has all required layers of isolation."""
    sandbox = machine.sandbox
    if sandbox.error:
        return problem(f"The local sandbox cannot be started: {sandbox.error}", _ELSEWHERE)
    missing = [layer for layer in sandbox.layers if layer.required and not layer.active]
    if missing:
        shown = "; ".join(f"{layer.name} ({layer.detail})" if layer.detail else layer.name for layer in missing)
        return problem(
            f"The local sandbox cannot provide {shown}; with isolation=strict, it refuses to start.", _ELSEWHERE
        )
    if not sandbox.layers:
        return note("The layers of the local sandbox were not recorded.", "rstar2 sandbox check")
    return ok(f"The local sandbox has all of its {sum(layer.required for layer in sandbox.layers)} required layers.")


_ELSEWHERE = (
    "Run `rstar2 sandbox serve` on a machine or in a container that provides them, and use the sandbox "
    "provider `remote`; or start the container with --security-opt seccomp=unconfined --cap-add "
    "SYS_ADMIN. `rstar2 sandbox check` shows details."
)

CHECKS = (shared_memory, user_limits, control_groups, sandbox_layers)


def _bytes(size: int) -> str:
    for unit, scale in (("GiB", _GIB), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= scale:
            return f"{size / scale:.3g} {unit}" if size < 1000 * scale else f"{size / scale:.0f} {unit}"
    return f"{size} bytes"
