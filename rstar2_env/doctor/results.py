"""``CheckResult``: the conclusion of one check, with a suggested fix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from rstar2_env.doctor.machine import MachineState

Severity = Literal["ok", "note", "warning", "problem", "skipped"]
"""``problem``: training fails or gives wrong results; ``warning``: it is slower, less safe or likely to fail; ``note``:
worth knowing; ``skipped``: the check does not apply to this machine."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Conclusion of a check.

    Attributes:
        level: Severity of the conclusion.
        line: The observation, in one line.
        fix: Suggested change; empty if there is nothing to do.
        name: Name of the check.
        title: Subject of the check.
    """

    level: Severity
    line: str
    fix: str = ""
    name: str = ""
    title: str = ""

    def record(self) -> dict[str, str]:
        """Convert to a JSON object."""
        return {"name": self.name, "title": self.title, "level": self.level, "line": self.line, "fix": self.fix}


MachineCheck = Callable[["MachineState"], CheckResult]
"""A check: a function of the state of a machine. Its name is the name of the function, its title the first line of the
docstring."""


def ok(line: str) -> CheckResult:
    """Result of a check without findings."""
    return CheckResult("ok", line)


def note(line: str, fix: str = "") -> CheckResult:
    """Result that is worth knowing."""
    return CheckResult("note", line, fix)


def warning(line: str, fix: str) -> CheckResult:
    """Result if training is slower, less safe or likely to fail."""
    return CheckResult("warning", line, fix)


def problem(line: str, fix: str) -> CheckResult:
    """Result if training fails or gives wrong results."""
    return CheckResult("problem", line, fix)


def skipped(line: str) -> CheckResult:
    """Result if the check does not apply."""
    return CheckResult("skipped", line)
