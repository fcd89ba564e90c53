"""``examine``: every check of a machine's state, in order."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from rstar2_env.doctor.checks import accelerators, collectives, host, kernels, rollouts, run_folder, visibility
from rstar2_env.doctor.finding import Checked, MachineCheck
from rstar2_env.doctor.machine import MachineState

FAMILIES = (accelerators, visibility, kernels, collectives, rollouts, host, run_folder)
"""The families of checks, in the order in which they are shown."""


def checks() -> Iterator[MachineCheck]:
    """Every check."""
    for family in FAMILIES:
        yield from family.CHECKS


def examine(machine: MachineState) -> list[Checked]:
    """What every check concludes of a machine's state, in a fixed order.

    Args:
        machine: The state.
    """
    results = []
    for check in checks():
        finding = check(machine)
        name = str(getattr(check, "__name__", check))
        title = (inspect.getdoc(check) or name).splitlines()[0]
        results.append(Checked(name, title, finding.level, finding.line, finding.fix))
    return results
