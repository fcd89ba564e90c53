"""``Diagnosis``: the findings of a run, as text, JSON or a notebook table."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rstar2_env.core.files.json_values import jsonable
from rstar2_env.diagnosis.base import SEVERITIES, Evidence, FindingSeverity, RunCheck

_LATE = 5
"""A check finds the first and the last step of a fault with at most this error, in steps: most rules average over 3
to 5 steps."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault that a check has found in a run.

    Attributes:
        check: Name of the check.
        title: Name of the fault, as a heading.
        severity: ``error``, ``warning`` or ``note``.
        since: First step at which the rule of the check held.
        until: Last step at which the rule held; ``None`` if it still holds.
        says: The observation as a sentence that states numbers.
        figures: The numbers on which the observation is based, by name.
        episodes: Keys of up to three episodes that show the fault.
        cause: The usual cause of the fault.
        change: Remedies, as options and commands that can be typed.
        otherwise: Other explanations of the observation.
        caused_by: Names of checks with findings in this run that usually cause this fault, in the order of the
            findings.
    """

    check: str
    title: str
    severity: FindingSeverity
    since: int
    until: int | None
    says: str
    figures: Mapping[str, float]
    episodes: Sequence[str]
    cause: str
    change: Sequence[str]
    otherwise: str
    caused_by: Sequence[str] = ()

    @classmethod
    def of(cls, check: RunCheck, evidence: Evidence, *, change: Sequence[str]) -> Finding:
        """Create a finding from a check, its evidence, and its remedies, in which the run's values are filled in."""
        return cls(
            check=check.name,
            title=check.title,
            severity=evidence.severity or check.severity,
            since=evidence.since,
            until=evidence.until,
            says=evidence.says,
            figures=dict(evidence.figures),
            episodes=evidence.episodes,
            cause=check.cause,
            change=change,
            otherwise=check.otherwise,
        )

    @property
    def when(self) -> str:
        """Text that names the steps at which the fault was found."""
        if self.until is None:
            return f"since step {self.since}"
        return f"step {self.since} to {self.until}" if self.until > self.since else f"step {self.since} only"

    @property
    def place(self) -> tuple[bool, int, int, str]:
        """Sort key: findings that still hold come before ended ones; then by severity, first step and name."""
        return self.until is not None, SEVERITIES.index(self.severity), self.since, self.check

    def can_cause(self, other: Finding) -> bool:
        """Whether this fault began before another fault, and did not end long before the other fault began.

        Checks average over a few steps, so the first step of a cause may be found a few steps too late.
        """
        return self.since <= other.since + _LATE and (self.until is None or self.until >= other.since - _LATE)

    @property
    def lines(self) -> list[str]:
        """Return the finding as lines of text."""
        lines = [f"{self.severity}: {self.title} ({self.check}, {self.when})", f"  {self.says}"]
        if self.caused_by:
            lines.append(f"  Probably an effect of another finding: {', '.join(self.caused_by)}")
        lines.append(f"  Usual cause: {self.cause}")
        lines += [f"  Change: {change}" for change in self.change]
        lines.append(f"  Other explanations: {self.otherwise}")
        if self.episodes:
            lines.append(f"  Episodes: {', '.join(self.episodes)}")
        return lines


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings in the order of ``Finding.place``, but each after the findings that usually cause it.

    A cause that has ended stays among the findings that ended.
    """
    by_place = sorted(findings, key=lambda one: one.place)
    ordered: dict[int, Finding] = {}
    begun: set[int] = set()

    def add(finding: Finding) -> None:
        if id(finding) in begun:
            return
        begun.add(id(finding))
        for other in by_place:
            if other.check in finding.caused_by and (other.until is None) == (finding.until is None):
                add(other)
        ordered[id(finding)] = finding

    for finding in by_place:
        add(finding)
    return list(ordered.values())


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The results of all checks on a run.

    Attributes:
        run: Path of the run.
        kind: Kind of the run.
        step: Last step that was examined; for a pipeline, the number of its stages.
        findings: The findings in the order of ``in_order``: first those that still hold, by severity, then those that
            ended; each comes after the findings that usually cause it.
        silent: Names of the checks that found nothing.
        not_recorded: For each check that could not decide, the data that the run lacks.
        stages: The diagnosis of each stage of a pipeline, by name.
    """

    run: str
    kind: str
    step: int
    findings: Sequence[Finding] = ()
    silent: Sequence[str] = ()
    not_recorded: Mapping[str, Sequence[str]] = field(default_factory=dict)
    stages: Mapping[str, Diagnosis] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Finding]:
        """Iterate over the findings."""
        return iter(self.findings)

    @property
    def names(self) -> list[str]:
        """Return the names of the checks that found a fault."""
        return [finding.check for finding in self.findings]

    def record(self) -> dict[str, Any]:
        """Return the diagnosis as JSON values."""
        record: dict[str, Any] = jsonable(
            {
                "run": self.run,
                "kind": self.kind,
                "step": self.step,
                "findings": [asdict(finding) for finding in self.findings],
                "silent": list(self.silent),
                "not_recorded": {name: list(lacks) for name, lacks in self.not_recorded.items()},
            }
        )
        if self.stages:
            record["stages"] = {name: stage.record() for name, stage in self.stages.items()}
        return record

    @property
    def summary(self) -> str:
        """One sentence that summarizes the diagnosis; findings that ended are counted separately."""
        still = [one for one in self.findings if one.until is None]
        counts = {severity: sum(one.severity == severity for one in still) for severity in SEVERITIES}
        parts = [f"{count} {name}{'s' * (count > 1)}" for name, count in counts.items() if count]
        ended = len(self.findings) - len(still)
        found = ", ".join(parts + [f"{ended} finding{'s' * (ended > 1)} that ended"] * (ended > 0))
        looked = (
            f"{len(self.findings) + len(self.silent)} checks examined {self.run} ({self.kind}, up to step {self.step})"
        )
        return f"{looked}: {found or 'no findings'}."

    def __str__(self) -> str:
        """The findings as text, and the checks that found nothing or could not decide."""
        if self.stages:
            return "\n\n".join(f"Stage {name}\n{stage}" for name, stage in self.stages.items())
        still = ["\n".join(finding.lines) for finding in self.findings if finding.until is None]
        ended = ["\n".join(finding.lines) for finding in self.findings if finding.until is not None]
        parts = [*still, *(["Findings that ended:"] if ended else []), *ended]
        tail = [self.summary]
        if self.silent:
            tail.append(f"Checks that did not find a problem: {', '.join(self.silent)}.")
        if self.not_recorded:
            lacking = "; ".join(f"{name} needs {', '.join(lacks)}" for name, lacks in self.not_recorded.items())
            tail.append(f"Not recorded: {lacking}.")
        return "\n\n".join([*parts, "\n".join(tail)])

    def _repr_html_(self) -> str:
        if self.stages:
            return "".join(f"<h4>{html.escape(name)}</h4>{stage._repr_html_()}" for name, stage in self.stages.items())
        rows = "".join(
            f"<tr><td>{finding.severity}</td><td>{html.escape(finding.title)}</td><td>{finding.when}</td>"
            f"<td>{html.escape(finding.says)}</td><td>{'<br>'.join(map(html.escape, finding.change))}</td></tr>"
            for finding in self.findings
        )
        head = "<tr><th>severity</th><th>finding</th><th>when</th><th>evidence</th><th>change</th></tr>"
        table = f"<table>{head}{rows}</table>" if self.findings else ""
        return f"<p>{html.escape(self.summary)}</p>{table}"
