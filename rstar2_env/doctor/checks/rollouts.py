"""Checks of what vLLM promises on ROCm: the same numbers twice, and sleep between steps."""

from __future__ import annotations

from rstar2_env.doctor.finding import CheckResult, note, skipped, warning
from rstar2_env.doctor.machine import MachineState
from rstar2_env.doctor.rocm_versions import VLLM_LEAST, at_least


def batch_invariance(machine: MachineState) -> CheckResult:
    """Whether vLLM's log-probabilities depend on what else is computed."""
    if not machine.amd or not machine.vllm.version:
        return skipped("No AMD accelerator, or no vLLM.")
    if machine.is_enabled("VLLM_BATCH_INVARIANT"):
        return warning(
            "VLLM_BATCH_INVARIANT=1: on ROCm vLLM accepts it without keeping it (pull requests 52231, 53943, 55958).",
            "Unset it, and do not count on bit-for-bit repeats; the correction of the loss weights the difference.",
        )
    return note(
        "No bit-for-bit reproducibility through vLLM on ROCm: log-probabilities depend on the batch.",
        "For runs that must repeat exactly: engine=transformers.",
    )


def sleep(machine: MachineState) -> CheckResult:
    """Whether an engine in the trainer's process can free its memory while weights train, and wakes up whole."""
    if not machine.amd or not machine.vllm.version:
        return skipped("No AMD accelerator, or no vLLM.")
    if not at_least(machine.vllm.version, VLLM_LEAST):
        return warning(
            f"vLLM {machine.vllm.version} may not free memory on ROCm when it sleeps (pull request 37533).",
            f"Use vLLM {VLLM_LEAST} or newer, or engine.sleep=false.",
        )
    return note(
        "Waking up on ROCm has had stale memory and rare faults (vLLM pull requests 44972, 52478). After each wake the "
        "trainer compares a known prompt and stops the run if the weights are not its own.",
        "If a run stops with HandoverError: engine.sleep=false, or vLLM servers on accelerators of their own.",
    )


CHECKS = (batch_invariance, sleep)
