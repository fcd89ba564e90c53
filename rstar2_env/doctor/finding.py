"""``CheckResult``: what one check concluded, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from rstar2_env.doctor.machine import MachineState

Severity = Literal["ok", "note", "warning", "problem", "skipped"]
"""``problem``: training fails or is wrong; ``warning``: it is slower, less safe or likely to fail; ``note``: worth
knowing; ``skipped``: the check does not apply to this machine."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a check concluded.

    Attributes:
        level: How bad it is.
        line: What was found, in one line.
        fix: What to do; empty where there is nothing to do.
    """

    level: Severity
    line: str
    fix: str = ""


MachineCheck = Callable[["MachineState"], CheckResult]
"""A check: a function of a machine's state alone. Its name is that of the function, its title the docstring's first
line."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A finding, with the check that made it.

    Attributes:
        name: Name of the check.
        title: What it looks at.
        level: As in the finding, like the other two.
        line: What was found.
        fix: What to do.
    """

    name: str
    title: str
    level: Severity
    line: str
    fix: str

    def record(self) -> dict[str, str]:
        """The result as JSON can hold it."""
        return asdict(self)


def ok(line: str) -> CheckResult:
    """Nothing to do."""
    return CheckResult("ok", line)


def note(line: str, fix: str = "") -> CheckResult:
    """Worth knowing."""
    return CheckResult("note", line, fix)


def warning(line: str, fix: str) -> CheckResult:
    """Slower, less safe or likely to fail."""
    return CheckResult("warning", line, fix)


def problem(line: str, fix: str) -> CheckResult:
    """Training fails or is wrong."""
    return CheckResult("problem", line, fix)


def skipped(line: str) -> CheckResult:
    """The check does not apply."""
    return CheckResult("skipped", line)
