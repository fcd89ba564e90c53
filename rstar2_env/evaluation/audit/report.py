"""The report of an audit: findings with their reproductions, counts of pairs by cause, the score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rstar2_env.evaluation.audit.suspicion import KINDS, shown
from rstar2_env.evaluation.figures.statistics import Interval


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """A finding that its reproduction showed in a fresh process.

    Attributes:
        kind: One of ``KINDS``.
        cause: The cause within its kind.
        said: A sentence with the smallest example.
        gold: The gold of the example.
        answer: The answer of the example.
        found: Number of calls that showed it.
        tried: Number of calls that could have shown it.
        script: The program that shows it; it ends with exit code 0.
        output: Output of the program.
    """

    kind: str
    cause: str
    said: str
    gold: str
    answer: str
    found: int
    tried: int
    script: str
    output: str


@dataclass(slots=True)
class CauseRow:
    """Pairs of one cause.

    Attributes:
        cause: Its name.
        right: Whether the answers are right.
        tried: Number of pairs.
        wrongly: Pairs whose grade is wrong.
        counts: Whether the pairs count in the score; spellings that the grader does not read do not.
    """

    cause: str
    right: bool
    tried: int = 0
    wrongly: int = 0
    counts: bool = True


@dataclass(frozen=True)
class AuditReport:
    """The findings of an audit.

    Attributes:
        target: The target, as the user wrote it.
        kind: Kind of target ("a TRL reward function").
        versions: Versions of the packages that it comes from, and of Python.
        form: The form in which it takes golds and answers.
        paid_at: Least score that counted as paid.
        golds: Number of golds of each class that it reads.
        score: Share of the pairs that count which it grades rightly, with a Wilson interval of 95 %.
        findings: The confirmed findings.
        unconfirmed: Suspicions that their program did not show in a fresh process, as sentences.
        causes: The pairs by cause.
        grades: Number of different calls that were graded.
        seconds: Duration.
        unfinished: Probes that the time did not suffice for.
    """

    target: str
    kind: str
    versions: Mapping[str, str]
    form: tuple[str, str]
    paid_at: float
    golds: Mapping[str, int]
    score: Interval
    findings: Sequence[AuditFinding]
    unconfirmed: Sequence[str]
    causes: Sequence[CauseRow]
    grades: int
    seconds: float
    unfinished: Sequence[str] = field(default=())

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    @property
    def cheapest(self) -> AuditFinding | None:
        """The exploit with the fewest characters per paid gold; ``None`` if none was found."""
        exploits = [finding for finding in self.findings if finding.kind == "exploit"]
        return min(exploits, key=lambda one: (len(one.answer) + 1) * one.tried / one.found, default=None)

    def of(self, kind: str) -> list[AuditFinding]:
        """Return the findings of one kind."""
        return [finding for finding in self.findings if finding.kind == kind]

    def rows(self) -> dict[str, str]:
        """Return the summary as words: the target, the score, the cheapest exploit."""
        cheapest, score = self.cheapest, self.score
        found = ", ".join(f"{kind} {len(self.of(kind))}" for kind in KINDS if self.of(kind))
        counted = sum(one.tried for one in self.causes if one.counts)
        rows = {
            "target": f"{self.kind}, {', '.join(f'{name} {version}' for name, version in self.versions.items())}",
            "pairs graded rightly": (
                f"{100 * score.value:.1f} % of {counted} (95 %: {100 * score.low:.1f} to {100 * score.high:.1f})"
                if counted
                else "none: the target does not tell its golds"
            ),
            "golds": ", ".join(f"{name} {count}" for name, count in self.golds.items()) or "none",
            "form of an answer": f"{self.form[1]}, paid from a score of {self.paid_at:g}",
            "findings": found or "none",
            "cheapest exploit": (
                "none found"
                if cheapest is None
                else f"{shown(cheapest.answer)}, paid for {cheapest.found} of {cheapest.tried} golds"
            ),
            "suspicions not confirmed": str(len(self.unconfirmed)),
            "time": f"{self.seconds:.1f} s, {self.grades} grades",
        }
        return rows | ({"not finished": ", ".join(self.unfinished)} if self.unfinished else {})

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values; docs/audit.md describes them."""
        cheapest = self.cheapest
        return {
            "target": self.target,
            "kind": self.kind,
            "ok": self.ok,
            "versions": dict(self.versions),
            "form": {"gold": self.form[0], "answer": self.form[1]},
            "paid_at": self.paid_at,
            "golds": dict(self.golds),
            "score": _number(self.score.value),
            "score_interval": [_number(self.score.low), _number(self.score.high)],
            "cheapest_exploit": None
            if cheapest is None
            else {"answer": cheapest.answer, "paid": cheapest.found, "golds": cheapest.tried},
            "findings": [{name: getattr(one, name) for name in one.__slots__} for one in self.findings],
            "found": {kind: len(self.of(kind)) for kind in KINDS},
            "unconfirmed": list(self.unconfirmed),
            "causes": [{name: getattr(one, name) for name in one.__slots__} for one in self.causes],
            "grades": self.grades,
            "seconds": round(self.seconds, 3),
            "unfinished": list(self.unfinished),
        }


def _number(value: float) -> float | None:
    return None if value != value else value
