"""Checks of the accelerators: access to the driver, devices visible to torch, architectures, memory."""

from __future__ import annotations

from rstar2_env.core.version import at_least
from rstar2_env.doctor.machine import Gpu, MachineState, Torch
from rstar2_env.doctor.results import DoctorResult, note, ok, problem, skipped, warning
from rstar2_env.doctor.rocm_versions import ARCHITECTURES, FULL_MEMORY_GB, TORCH, TORCH_INDEX, VLLM_IMAGE

_WHOLE = 0.9
"""An accelerator counts as a partition if it has less than this share of the full memory of its hardware model."""


def driver_access(machine: MachineState) -> DoctorResult:
    """Check whether this process can use the accelerator driver of the kernel."""
    driver = machine.driver
    if not driver.vendor:
        return note("No accelerator was found: only small models can be trained here, on the CPU.")
    closed = [node for node, usable in driver.nodes.items() if not usable]
    if closed:
        missing = " and ".join(name for name in ("video", "render") if name not in driver.groups)
        fix = f"Add this user to the groups {missing or 'that own these files'} (usermod -aG), and log in again."
        if machine.system.container:
            fix = (
                "Start the container with --device /dev/kfd --device /dev/dri --group-add video, and, if its user "
                "is not root, --group-add with the number of the host's group render (getent group render)."
            )
        return problem(f"This process cannot access {', '.join(closed)}.", fix)
    if machine.amd and len(driver.nodes) < 2:
        return problem(
            "The driver has accelerators, but /dev/dri has no render node.",
            "In a container, add --device /dev/dri at its start; otherwise load the driver (modprobe amdgpu).",
        )
    if machine.amd and not driver.devices:
        return problem(
            "/dev/kfd exists, but the driver does not list an accelerator.",
            "See `dmesg | grep amdgpu`; load the driver (modprobe amdgpu).",
        )
    version = f", driver {driver.version}" if driver.version else ""
    rocm = f", ROCm {driver.rocm}" if driver.rocm else ""
    return ok(f"{_named(driver.devices)}{version}{rocm}.")


def torch_build(machine: MachineState) -> DoctorResult:
    """Check whether the build of torch matches the driver."""
    torch, vendor = machine.torch, machine.driver.vendor
    if not torch.version:
        return note("torch is not installed: environments, sandbox and verification work, but training does not.")
    if torch.error:
        return problem(f"torch {torch.version} cannot be loaded: {torch.error}", _torch_fix(machine))
    needed = _NEEDED.get(vendor, torch.build)
    detail = torch.hip or torch.cuda
    line = f"torch {torch.version} is a {torch.build} build{f' ({detail})' if detail else ''}"
    if torch.build != needed:
        return problem(f"{line}, but the accelerators need {needed}.", _torch_fix(machine))
    return ok(f"{line}.")


def torch_devices(machine: MachineState) -> DoctorResult:
    """Check whether torch sees all accelerators of the driver."""
    torch, there = machine.torch, len(machine.driver.devices)
    if not there or torch.error or torch.build != _NEEDED.get(machine.driver.vendor):
        return skipped(
            "The devices of torch were not listed, because there is no accelerator, or torch is not built for it."
        )
    seen = len(torch.devices)
    masked = [name for name in _MASKS if machine.variables.get(name)]
    if not seen:
        why = f" ({', '.join(f'{name}={machine.variables[name]}' for name in masked)})" if masked else ""
        fix = (
            "Unset these variables, or select existing devices in them."
            if masked
            else "See the results of the checks driver_access and torch_build."
        )
        return problem(f"torch sees none of the {there} accelerators{why}.", fix)
    if seen < there and not masked:
        return warning(
            f"torch sees only {seen} of {there} accelerators, although no environment variable hides the others.",
            "See `rocm-smi` or `nvidia-smi`: a device may have failed, or the container may have only some devices.",
        )
    precision = "bfloat16" if torch.bf16 else "no bfloat16: set model.dtype=float32"
    return ok(f"torch sees {seen} of {there} accelerators; {precision}.")


def architectures(machine: MachineState) -> DoctorResult:
    """Check whether the installed software has kernels for the architectures of the accelerators."""
    if not machine.amd:
        return skipped("This check is only for AMD accelerators.")
    archs = sorted({device.arch for device in machine.driver.devices if device.arch})
    if len(archs) > 1:
        return warning(
            f"The accelerators have different architectures: {', '.join(archs)}.",
            "Select devices of one architecture with HIP_VISIBLE_DEVICES: all processes must compute in the same way.",
        )
    # ``torch_build`` reports a build for another vendor, so it is not reported here again.
    torch = machine.torch if machine.torch.build == "rocm" else Torch()
    for arch in archs:
        if torch.archs and arch not in torch.archs:
            return problem(
                f"This build of torch supports {', '.join(torch.archs)}, but not {arch}.", _torch_fix(machine)
            )
        if arch not in ARCHITECTURES:
            return warning(
                f"{arch} is not one of the supported Instinct architectures ({', '.join(ARCHITECTURES)}).",
                "It may work: try `make train` first, and submit the report (docs/gpu-report.md).",
            )
        series, least = ARCHITECTURES[arch]
        if torch.hip and not at_least(torch.hip, least):
            return problem(
                f"{arch} ({series}) needs ROCm {least}, and torch was built for {torch.hip}.", _torch_fix(machine)
            )
    return ok(f"{', '.join(archs)} ({', '.join(ARCHITECTURES[arch][0] for arch in archs)}).")


def device_memory(machine: MachineState) -> DoctorResult:
    """Check whether the accelerators are whole devices or partitions, judged from their memory."""
    devices = machine.torch.devices or machine.driver.devices
    if not devices:
        return skipped("No accelerator.")
    smallest = min(device.memory_bytes for device in devices)
    line = f"{len(devices)} x {smallest / 1e9:.0f} GB"
    for name, whole in FULL_MEMORY_GB.items():
        if any(name in device.name for device in devices) and smallest < _WHOLE * whole * 1e9:
            return note(
                f"{line}: an {name} has {whole} GB, so these are partitions (CPX, NPS4).",
                "To use whole accelerators for one model: amd-smi set --compute-partition SPX --memory-partition NPS1.",
            )
    return ok(f"{line}.")


def numa_balancing(machine: MachineState) -> DoctorResult:
    """Check whether the kernel moves memory between NUMA nodes that accelerators use."""
    if not machine.driver.devices or machine.system.numa_nodes < 2:
        return skipped("This check is only for machines with an accelerator and several NUMA nodes.")
    if machine.system.numa_balancing:
        return warning(
            "NUMA balancing is on: the kernel moves memory pages that the accelerators are reading, which stalls the "
            "accelerators.",
            "On the host: sudo sysctl kernel.numa_balancing=0",
        )
    return ok(f"NUMA balancing is off, with {machine.system.numa_nodes} NUMA nodes.")


_NEEDED = {"amd": "rocm", "nvidia": "cuda"}
_MASKS = ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")

CHECKS = (driver_access, torch_build, torch_devices, architectures, device_memory, numa_balancing)


def _named(devices: tuple[Gpu, ...]) -> str:
    names = [device.name for device in devices]
    return ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names))


def _torch_fix(machine: MachineState) -> str:
    if machine.amd:
        return f"pip install --force-reinstall torch=={TORCH} --index-url {TORCH_INDEX}, or use the image {VLLM_IMAGE}."
    return "Install the build of torch for this driver (pytorch.org/get-started)."
