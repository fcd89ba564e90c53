"""``examine``: run all checks on the state of a machine."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import replace

from rstar2_env.doctor.checks import accelerators, collectives, host, kernels, rollouts, run_folder, visibility
from rstar2_env.doctor.machine import MachineState
from rstar2_env.doctor.results import DoctorResult, MachineCheck

FAMILIES = (accelerators, visibility, kernels, collectives, rollouts, host, run_folder)
"""The families of checks, in display order."""


def checks() -> Iterator[MachineCheck]:
    """Iterate over all checks."""
    for family in FAMILIES:
        yield from family.CHECKS


def examine(machine: MachineState) -> list[DoctorResult]:
    """Run all checks on the state of a machine; return their results in display order."""
    results = []
    for check in checks():
        name = str(getattr(check, "__name__", check))
        title = (inspect.getdoc(check) or name).splitlines()[0]
        results.append(replace(check(machine), name=name, title=title))
    return results
