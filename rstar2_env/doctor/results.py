"""``DoctorResult``: the conclusion of one check, with a suggested fix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from rstar2_env.doctor.machine import MachineState

ResultLevel = Literal["ok", "note", "warning", "problem", "skipped"]
"""``problem``: training fails or gives wrong results; ``warning``: training is slower, less safe or likely to fail;
``note``: worth knowing; ``skipped``: the check does not apply to this machine."""


@dataclass(frozen=True, slots=True)
class DoctorResult:
    """Conclusion of a check.

    Attributes:
        level: Severity; see ``ResultLevel``.
        line: The observation, in one line.
        fix: Suggested change; empty if there is nothing to do.
        name: Name of the check.
        title: Subject of the check.
    """

    level: ResultLevel
    line: str
    fix: str = ""
    name: str = ""
    title: str = ""


MachineCheck = Callable[["MachineState"], DoctorResult]
"""A check: a function of the state of a machine. The function's name is the check's name, and the first line of its
docstring is the check's title."""


def ok(line: str) -> DoctorResult:
    """Return the result of a check that found nothing wrong."""
    return DoctorResult("ok", line)


def note(line: str, fix: str = "") -> DoctorResult:
    """Return a result that informs the user and requires no action."""
    return DoctorResult("note", line, fix)


def warning(line: str, fix: str) -> DoctorResult:
    """Return the result for a machine on which training is slower, less safe or likely to fail."""
    return DoctorResult("warning", line, fix)


def problem(line: str, fix: str) -> DoctorResult:
    """Return the result for a machine on which training fails or gives wrong results."""
    return DoctorResult("problem", line, fix)


def skipped(line: str) -> DoctorResult:
    """Return the result of a check that does not apply to the machine."""
    return DoctorResult("skipped", line)
