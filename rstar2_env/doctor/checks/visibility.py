"""Checks of the environment variables of HIP, ROCr and CUDA that select devices, and of Ray's changes to them."""

from __future__ import annotations

from rstar2_env.doctor.machine import MachineState
from rstar2_env.doctor.results import DoctorResult, ok, problem, skipped, warning

_NOSET = tuple(f"RAY_EXPERIMENTAL_NOSET_{kind}_VISIBLE_DEVICES" for kind in ("HIP", "ROCR", "CUDA"))
_HIP, _ROCR, _CUDA = "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"


def visible_devices(machine: MachineState) -> DoctorResult:
    """Check whether the variables that select devices contradict each other."""
    chosen = {name: machine.variables[name] for name in (_HIP, _ROCR, _CUDA) if name in machine.variables}
    line = ", ".join(f"{name}={value}" for name, value in chosen.items())
    if not machine.amd:
        return ok(f"{line or 'No variable selects devices'}.") if machine.driver.vendor else skipped("No accelerator.")
    if _HIP in chosen and _CUDA in chosen and chosen[_HIP] != chosen[_CUDA]:
        return problem(
            f"{line}: vLLM refuses to start, and torch applies both selections.", f"Keep only {_HIP}: unset {_CUDA}."
        )
    if _ROCR in chosen and (_HIP in chosen or _CUDA in chosen):
        inner = _HIP if _HIP in chosen else _CUDA
        return problem(
            f"{line}: {inner} selects among the devices that {_ROCR} leaves, so both selections apply.",
            f"Keep only {_HIP}: unset {_ROCR}.",
        )
    if _ROCR in chosen:
        return warning(f"{line}: Ray refuses to start with it, and vLLM does not read it.", f"Use {_HIP} instead.")
    if _CUDA in chosen and _HIP not in chosen:
        return warning(f"{line}: ROCm reads this variable, but Ray on AMD sets {_HIP}.", f"Use {_HIP} instead.")
    return ok(f"{line or 'No variable selects devices, so all are visible'}.")


def ray_visibility(machine: MachineState) -> DoctorResult:
    """Check whether Ray changes the variables that select devices."""
    if not machine.amd or "ray" not in machine.packages:
        return skipped("This check is only for AMD accelerators with Ray.")
    enabled = [name for name in _NOSET if machine.is_enabled(name)]
    if 0 < len(enabled) < len(_NOSET):
        missing = [name for name in _NOSET if name not in enabled]
        return problem(
            f"Ray has three NOSET variables, of which only {' and '.join(enabled)} is set: the devices of a worker are "
            "then numbered in two ways, and RCCL picks the wrong device.",
            f"export {' '.join(f'{name}=1' for name in missing)}",
        )
    if not enabled:
        return ok("Ray selects the devices of its workers. To run vLLM on Ray, set its three NOSET variables.")
    return ok("Ray does not change the variables (all three NOSET variables are set).")


CHECKS = (visible_devices, ray_visibility)
