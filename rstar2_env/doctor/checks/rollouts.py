"""Checks of vLLM features on ROCm: batch invariance, and sleep mode during optimizer steps."""

from __future__ import annotations

from rstar2_env.core.version import at_least
from rstar2_env.doctor.machine import MachineState
from rstar2_env.doctor.results import DoctorResult, note, skipped, warning
from rstar2_env.doctor.rocm_versions import VLLM_LEAST


def batch_invariance(machine: MachineState) -> DoctorResult:
    """Check whether vLLM's log-probabilities depend on the rest of the batch."""
    if not machine.amd or not machine.vllm.version:
        return skipped("This check is only for AMD accelerators with vLLM.")
    if machine.is_enabled("VLLM_BATCH_INVARIANT"):
        return warning(
            "VLLM_BATCH_INVARIANT=1: on ROCm, vLLM accepts it without effect (pull requests 52231, 53943, 55958).",
            "Unset it, and do not rely on bit-for-bit reproducibility; the loss corrects for differences between the "
            "log-probabilities of vLLM and of the trainer.",
        )
    return note(
        "vLLM on ROCm is not bit-for-bit reproducible: log-probabilities depend on the batch.",
        "For exactly reproducible runs, use engine=transformers.",
    )


def sleep(machine: MachineState) -> DoctorResult:
    """Check whether an engine in the training process can free its memory during optimizer steps and resume."""
    if not machine.amd or not machine.vllm.version:
        return skipped("This check is only for AMD accelerators with vLLM.")
    if not at_least(machine.vllm.version, VLLM_LEAST):
        return warning(
            f"vLLM {machine.vllm.version} may not free memory on ROCm when it sleeps (pull request 37533).",
            f"Use vLLM {VLLM_LEAST} or newer, or engine.sleep=false.",
        )
    return note(
        "On ROCm, vLLM has had stale memory and rare faults after waking up (vLLM pull requests 44972, 52478). After "
        "each wake-up, the trainer checks a known prompt, and stops the run if the weights of the engine differ.",
        "If a run stops with HandoverError (the engine has other weights than the trainer), set "
        "engine.sleep=false, or use vLLM servers on separate accelerators.",
    )


CHECKS = (batch_invariance, sleep)
