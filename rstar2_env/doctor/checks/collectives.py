"""Checks of collective communication: RCCL's settings, and torch's allocator with vLLM's all-reduce."""

from __future__ import annotations

from rstar2_env.core.version import at_least
from rstar2_env.doctor.machine import MachineState
from rstar2_env.doctor.results import DoctorResult, note, ok, problem, skipped, warning

_ALLOCATOR = ("PYTORCH_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
_WITHOUT_MSCCL = "7.13"
"""First ROCm version whose RCCL does not have MSCCL, according to the RCCL usage tips of that version."""


_SUGGESTED = {"NCCL_MIN_NCHANNELS": "112", "HSA_ENABLE_IPC_MODE_LEGACY": "1"}
"""Environment variables, with their values, that the container images of AMD, verl and miles set for machines with
several accelerators."""


def rccl(machine: MachineState) -> DoctorResult:
    """Check whether the settings of RCCL suit this machine."""
    if not machine.amd:
        return skipped("This check is only for AMD accelerators.")
    if len(machine.driver.devices) < 2:
        return skipped("There is only one accelerator, so accelerators do not communicate.")
    found = machine.variables
    if machine.is_enabled("NCCL_P2P_DISABLE"):
        return warning(
            "NCCL_P2P_DISABLE=1: accelerators communicate through main memory, which is many times slower.",
            "Unset it, unless your board is known to need it (then start vLLM with --disable-custom-all-reduce too).",
        )
    if not machine.is_enabled("HSA_NO_SCRATCH_RECLAIM"):
        return warning(
            "HSA_NO_SCRATCH_RECLAIM is not set: RCCL of ROCm 7.1 and later needs it (vLLM's ROCm image sets it).",
            "export HSA_NO_SCRATCH_RECLAIM=1",
        )
    if "RCCL_MSCCL_ENABLE" in found and at_least(machine.driver.rocm, _WITHOUT_MSCCL):
        return note(f"RCCL_MSCCL_ENABLE has no effect with ROCm {machine.driver.rocm}.", "Unset it.")
    missing = {name: value for name, value in _SUGGESTED.items() if not found.get(name)}
    if missing:
        return note(
            f"Not set: {', '.join(missing)}. Communication between accelerators may be slow, or leak memory.",
            f"export {' '.join(f'{name}={value}' for name, value in missing.items())}",
        )
    if found.get("NCCL_DEBUG", "").upper() in ("INFO", "TRACE"):
        return note(f"NCCL_DEBUG={found['NCCL_DEBUG']} makes logs very long.", "export NCCL_DEBUG=WARN after debugging")
    return ok("RCCL's settings are fine.")


def allocator(machine: MachineState) -> DoctorResult:
    """Check whether expandable segments in torch's allocator conflict with vLLM's custom all-reduce."""
    if not machine.driver.vendor:
        return skipped("No accelerator.")
    for name in _ALLOCATOR:
        if "expandable_segments:true" in machine.variables.get(name, "").replace(" ", "").casefold():
            if not machine.vllm.version:
                return ok(f"{name} enables expandable segments; vLLM, which they would break, is not installed.")
            several = len(machine.driver.devices) > 1
            return (problem if several else warning)(
                f"{name} has expandable_segments:True, which prevents vLLM's custom all-reduce from sharing buffers: "
                "a server on several accelerators fails or returns garbage.",
                f"Set {name} for the trainer only; start servers without it, or with --disable-custom-all-reduce.",
            )
    return ok("torch's allocator does not use expandable segments.")


CHECKS = (rccl, allocator)
