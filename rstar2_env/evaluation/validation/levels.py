"""Run the checks of a level and of all below it, and report the results.

Used by ``validate(env, level=3)`` and ``rstar2 validate ID --level 3``. Not covered: the checks (``check`` lists their
modules), and the page (``page``).
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rstar2_env.core.errors import ConfigurationError, UnknownNameError
from rstar2_env.core.stop_request import Stop
from rstar2_env.core.text import html_table, text_table
from rstar2_env.evaluation.validation.bench import Bench
from rstar2_env.evaluation.validation.check import (
    CHECKS,
    FAILED,
    LEVELS,
    NOT_APPLICABLE,
    PASSED,
    Check,
    Result,
    make_check,
)

for _module in ("static", "runtime", "containment", "semantic", "leakage", "grading_again", "statistical"):
    importlib.import_module(f"rstar2_env.evaluation.validation.{_module}")  # puts its checks into the table, in order

REPORT_VERSION = 1
"""Version of the JSON that ``Report.to_dict`` returns; it increases when a key is removed or changes its meaning."""

HEADINGS = ("check", "level", "outcome", "found")
"""Headings of the columns of ``Report.rows``."""


@dataclass(slots=True)
class Report:
    """The results of the checks.

    Attributes:
        env_id: Id of the environment.
        level: The highest requested level.
        plays: Number of episodes of each player.
        seed: The first seed.
        results: The result of each check, in order.
        seconds: Wall-clock seconds.
        interrupted: Whether the run was stopped before all checks were performed.
    """

    env_id: str
    level: int
    plays: int
    seed: int
    results: list[Result] = field(default_factory=list)
    seconds: float = 0.0
    interrupted: bool = False

    @property
    def ok(self) -> bool:
        """Whether no check failed."""
        return not self.of(FAILED)

    def of(self, outcome: str) -> list[Result]:
        """Return the results with an outcome: ``PASSED``, ``FAILED`` or ``NOT_APPLICABLE``."""
        return [result for result in self.results if result.outcome == outcome]

    def named(self, name: str) -> Result:
        """Return the result of one check.

        Raises:
            UnknownNameError: The check was not performed.
        """
        for result in self.results:
            if result.check.name == name:
                return result
        raise UnknownNameError("check", name, [result.check.name for result in self.results])

    @property
    def title(self) -> str:
        """The environment, the verdict and the number of checks by outcome."""
        verdict = "interrupted" if self.interrupted else "fit to train on" if self.ok else "not fit to train on"
        counts = ", ".join(f"{len(self.of(outcome))} {outcome}" for outcome in (PASSED, FAILED, NOT_APPLICABLE))
        return f"{self.env_id}: {verdict} ({counts})"

    def rows(self) -> list[tuple[str, str, str, str]]:
        """Return a row for each check; ``HEADINGS`` names the columns."""
        return [(one.check.name, str(one.check.level), one.outcome, one.said) for one in self.results]

    def __str__(self) -> str:
        """The checks as a table."""
        return text_table(self.title, [HEADINGS, *self.rows()])

    def _repr_html_(self) -> str:
        return html_table(self.title, self.rows(), headings=HEADINGS)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values, as ``rstar2 validate --level N --json`` prints it."""
        return {
            "version": REPORT_VERSION,
            "env_id": self.env_id,
            "level": self.level,
            "ok": self.ok,
            "plays": self.plays,
            "seed": self.seed,
            **{
                name: len(self.of(outcome))
                for name, outcome in (("passed", PASSED), ("failed", FAILED), ("not_applicable", NOT_APPLICABLE))
            },
            "checks": [result.to_dict() for result in self.results],
            "seconds": round(self.seconds, 3),
            "interrupted": self.interrupted,
        }


def run_levels(
    bench: Bench,
    level: int,
    checks: Sequence[str],
    progress: Callable[[int, int | None, str], None],
    stop: Stop,
) -> Report:
    """Perform the checks of a level and of all levels below it, then close the environments.

    Args:
        bench: The environment under test.
        level: From 1 to 4.
        checks: Names of the checks to perform, from any level; empty means all checks up to ``level``.
        progress: Called before every check with the number of finished checks, the total, and the check's name.
        stop: Once a stop is requested, no further check begins.

    Raises:
        ConfigurationError: There is no such level.
        UnknownNameError: There is no such check.
    """
    chosen = chosen_checks(level, checks)
    began = time.perf_counter()
    report = Report(bench.found.name, level, bench.plays, bench.seed)
    try:
        for number, one in enumerate(chosen):
            if stop():
                report.interrupted = True
                break
            progress(number, len(chosen), one.name)
            report.results.append(make_check(one, bench))
    finally:
        bench.close()
    report.seconds = time.perf_counter() - began
    return report


def chosen_checks(level: int, names: Sequence[str] = ()) -> list[Check]:
    """Return the checks to perform.

    Args:
        level: From 1 to 4; the checks of this level and of all levels below it are returned.
        names: Names of the only checks to return, whatever their level; empty means all checks of these levels.

    Raises:
        ConfigurationError: There is no such level.
        UnknownNameError: There is no such check.
    """
    if level not in LEVELS:
        said = ", ".join(f"{number} ({name})" for number, name in LEVELS.items())
        raise ConfigurationError(f"`level` must be one of {said}, not {level!r}.", option="level")
    for name in names:
        if name not in CHECKS:
            raise UnknownNameError("check", name, CHECKS, listed_by="rstar2 help validation-checks")
    if names:
        return [one for one in CHECKS.values() if one.name in names]
    return sorted((one for one in CHECKS.values() if one.level <= level), key=lambda one: one.level)
