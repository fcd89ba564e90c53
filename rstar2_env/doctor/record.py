"""Takes the state of this machine, as a ``MachineState``.

Covered: files under ``/proc``, ``/sys`` and ``/dev``, limits of this process, installed distributions, variables that
matter, the layers of the local sandbox, the folder of runs. Nothing is changed but for a file that is written into
that folder and removed. Not recorded: names of the machine and its users, but for what the
folder's path says; variables that may hold keys or tokens.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
import resource
import tempfile
import time
import warnings
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from rstar2_env.core.errors import Rstar2Error
from rstar2_env.doctor import record_devices
from rstar2_env.doctor.machine import Folder, Layer, MachineState, ProcessLimits, SandboxState, System

_PACKAGES = (
    "rstar2-env",
    "transformers",
    "trl",
    "accelerate",
    "peft",
    "deepspeed",
    "ray",
    "triton",
    "pytorch-triton-rocm",
    "triton-rocm",
    "amd-aiter",
    "aiter",
    "flash-attn",
    "kernels",
    "amdsmi",
)
_CUDA_PACKAGES = re.compile(r"nvidia-(?!ml-py)|cuda-|flashinfer")
"""Packages of CUDA libraries; ``nvidia-ml-py`` is a reader that others bring along everywhere."""

_VARIABLES = re.compile(
    r"(HIP|ROCR|HSA|AMD|AITER|GPU|MIOPEN|ROCM|HCC|NCCL|RCCL|VLLM|PYTORCH|TORCH|RAY_EXPERIMENTAL_NOSET|RAY_ACCEL|"
    r"ACCELERATE|FSDP|NVTE|SAFETENSORS|HF_HUB_OFFLINE|CUDA|OMP|MKL|OPENBLAS)(_|$)"
)
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_UNLIMITED = 1 << 62
_TIME_ERROR = 5


def record(folder: str | os.PathLike[str] = ".") -> MachineState:
    """The state of this machine.

    Args:
        folder: Where runs are to be written; it need not exist.
    """
    return MachineState(
        system=_system(),
        driver=record_devices.driver(),
        torch=record_devices.torch(),
        vllm=record_devices.vllm(),
        packages=_packages(),
        environment=variables(os.environ),
        bounds=_bounds(),
        sandbox=_sandbox(),
        folder=_folder(Path(folder)),
    )


def variables(environment: os._Environ[str] | dict[str, str]) -> dict[str, str]:
    """Those variables that change how training runs, without any that may hold a secret."""
    return {
        name: value
        for name, value in sorted(environment.items())
        if _VARIABLES.match(name) and not _SECRET.search(name)
    }


def _system() -> System:
    try:
        release = platform.freedesktop_os_release().get("PRETTY_NAME", "")
    except OSError:
        release = platform.system()
    balancing = _read("/proc/sys/kernel/numa_balancing")
    library, version = platform.libc_ver()
    return System(
        kernel=platform.release(),
        distribution=release,
        python=platform.python_version(),
        glibc=version if library == "glibc" else "",
        cpus=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        memory_bytes=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        container=any(os.path.exists(mark) for mark in ("/.dockerenv", "/run/.containerenv")),
        numa_nodes=max(1, len(list(Path("/sys/devices/system/node").glob("node[0-9]*")))),
        numa_balancing=balancing != "0" if balancing else None,
    )


def _packages() -> dict[str, str]:
    found = {}
    for one in metadata.distributions():
        name = str(one.name or "").lower().replace("_", "-")
        if name in _PACKAGES or _CUDA_PACKAGES.match(name):
            found[name] = one.version
    return dict(sorted(found.items()))


def _bounds() -> ProcessLimits:
    def soft(which: int) -> int:
        found = resource.getrlimit(which)[0]
        return -1 if found == resource.RLIM_INFINITY else found

    shm = 0
    with suppress(OSError):
        shm = os.statvfs("/dev/shm").f_frsize * os.statvfs("/dev/shm").f_blocks
    version, memory, cpus, pids = _control_group()
    return ProcessLimits(
        shm_bytes=shm,
        files=soft(resource.RLIMIT_NOFILE),
        locked_bytes=soft(resource.RLIMIT_MEMLOCK),
        stack_bytes=soft(resource.RLIMIT_STACK),
        processes=soft(resource.RLIMIT_NPROC),
        cgroup=version,
        cgroup_memory_bytes=memory,
        cgroup_cpus=cpus,
        cgroup_pids=pids,
    )


def _control_group() -> tuple[int, int, float, int]:
    """Version of the control groups, and the limits of this process's own: memory, cores, processes."""
    root = Path("/sys/fs/cgroup")
    own: dict[str, str] = {}
    for line in _read("/proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        own |= dict.fromkeys(controllers.split(","), path.lstrip("/"))
    if (root / "cgroup.controllers").exists():
        at = root / own.get("", "")
        share, _, each = _read(at / "cpu.max").partition(" ")
        cpus = int(share) / int(each) if share.isdigit() and each.isdigit() else -1.0
        return 2, _limit(_read(at / "memory.max")), cpus, _limit(_read(at / "pids.max"))
    if not (root / "memory").exists():
        return 0, -1, -1.0, -1
    memory = _limit(_read(root / "memory" / own.get("memory", "") / "memory.limit_in_bytes"))
    at = root / "cpu" / own.get("cpu", "")
    quota, period = _limit(_read(at / "cpu.cfs_quota_us")), _limit(_read(at / "cpu.cfs_period_us"))
    pids = _limit(_read(root / "pids" / own.get("pids", "") / "pids.max"))
    return 1, memory, quota / period if quota > 0 and period > 0 else -1.0, pids


def _limit(text: str) -> int:
    """A limit of a control group; -1 without one."""
    return int(text) if text.isdigit() and int(text) < _UNLIMITED else -1


def _sandbox() -> SandboxState:
    from rstar2_env.sandbox import make_sandbox

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # the gaps are what is recorded here
            with make_sandbox("local", isolation="best") as sandbox:
                layers = sandbox.capabilities()
    except Rstar2Error as error:
        return SandboxState(error=str(error)[:300])
    return SandboxState(tuple(Layer(one.name, one.active, one.detail, one.required) for one in layers))


def _folder(wanted: Path) -> Folder:
    wanted = wanted.absolute()
    there = next(path for path in (wanted, *wanted.parents) if path.is_dir())
    writable, ahead = True, 0.0
    try:
        with tempfile.NamedTemporaryFile(dir=there, prefix=".rstar2-doctor-") as file:
            before = time.time()
            os.utime(file.name)  # the clock of a network file system is its server's
            found, after = os.stat(file.name).st_mtime, time.time()
            ahead = min(found - before, 0.0) + max(found - after, 0.0)
    except OSError:
        writable = False
    state = os.statvfs(there)
    return Folder(
        path=str(there),
        writable=writable,
        filesystem=_filesystem(there),
        free_bytes=state.f_bavail * state.f_frsize,
        ahead_s=round(ahead, 3),
        synchronized=_synchronized(),
        year=time.gmtime().tm_year,
    )


def _filesystem(folder: Path) -> str:
    best, kind = -1, ""
    for line in _read("/proc/self/mounts").splitlines():
        fields = line.split()
        at = Path(fields[1].replace("\\040", " "))
        if folder.is_relative_to(at) and len(at.parts) >= best:
            best, kind = len(at.parts), fields[2]
    return kind


def _synchronized() -> bool | None:
    """Whether the kernel's clock is kept by a time service."""
    buffer = ctypes.create_string_buffer(512)  # larger than ``struct timex``; its mode 0 changes nothing
    with suppress(OSError, AttributeError):
        state = ctypes.CDLL(None, use_errno=True).adjtimex(buffer)
        return None if state < 0 else state != _TIME_ERROR
    return None


def _read(path: str | Path) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
