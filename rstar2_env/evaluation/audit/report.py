"""``AuditReport``: findings with programs that reproduce them, counts of pairs by cause, and the score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rstar2_env.core.text import html_table, text_table
from rstar2_env.evaluation.audit.suspicion import KINDS, shown
from rstar2_env.evaluation.figures.statistics import Interval


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """A defect that a reproduction, a short program, has shown in a fresh process.

    Attributes:
        kind: One of ``KINDS``.
        cause: The cause, such as "a digit appended".
        said: Sentence that describes the finding, with the smallest example.
        gold: The gold answer of the example.
        answer: The answer of the example.
        found: Number of calls that showed the finding.
        tried: Number of calls that could have shown the finding.
        script: The program that reproduces the finding; exit code 0 means that the finding was reproduced.
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
    """Counts of the (gold answer, answer) pairs of one cause.

    Attributes:
        cause: Kind of spelling or mistake that the pairs test, such as "a digit appended".
        right: Whether the answers of these pairs are right.
        tried: Number of pairs.
        wrongly: Number of pairs whose grade is wrong.
        counts: Whether the pairs count in the score; spellings that the grader does not support do not count.
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
        target: The audited grader (the target), as the user wrote it.
        kind: Kind of target ("a TRL reward function").
        versions: Versions of Python and of the packages that define the target.
        form: The formats in which the target expects gold answers and answers.
        paid_at: Smallest score that counted as accepted.
        golds: Number of gold answers that the target supports, by their class; ``{"own problems": n}`` if it can only
            grade its own problems.
        score: Share of correctly graded pairs among the pairs that count, with its 95 % Wilson interval.
        findings: The findings, each reproduced by its program in a fresh process.
        unconfirmed: One sentence for each suspicion that its program did not confirm in a fresh process.
        causes: Counts of the pairs, by cause.
        grades: Number of distinct calls that were graded.
        seconds: Wall-clock seconds of the audit.
        unfinished: Checks that were skipped or cut short because the time was used up.
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
        """Whether there are no findings."""
        return not self.findings

    @property
    def cheapest(self) -> AuditFinding | None:
        """The exploit with the lowest cost; ``None`` without exploits.

        The cost is (length of the text + 1) / (share of the tried gold answers for which the text was accepted).
        """
        exploits = [finding for finding in self.findings if finding.kind == "exploit"]
        return min(exploits, key=lambda one: (len(one.answer) + 1) * one.tried / one.found, default=None)

    def of(self, kind: str) -> list[AuditFinding]:
        """Return the findings of a kind, one of ``KINDS``."""
        return [finding for finding in self.findings if finding.kind == kind]

    def rows(self) -> dict[str, str]:
        """Return the rows of a summary table: the target, the score, the cheapest exploit, and others."""
        cheapest, score = self.cheapest, self.score
        found = ", ".join(f"{kind} {len(self.of(kind))}" for kind in KINDS if self.of(kind))
        counted = sum(one.tried for one in self.causes if one.counts)
        rows = {
            "target": f"{self.kind}, {', '.join(f'{name} {version}' for name, version in self.versions.items())}",
            "pairs graded correctly": (
                f"{100 * score.value:.1f} % of {counted} (95 %: {100 * score.low:.1f} to {100 * score.high:.1f})"
                if counted
                else "none: the target does not reveal its gold answers"
            ),
            "gold answers": ", ".join(f"{name} {count}" for name, count in self.golds.items()) or "none",
            "format of answers": f"{self.form[1]}, accepted at a score of {self.paid_at:g} or more",
            "findings": found or "none",
            "cheapest exploit": (
                "none found"
                if cheapest is None
                else f"{shown(cheapest.answer)}, accepted for {cheapest.found} of {cheapest.tried} gold answers"
            ),
            "suspicions not confirmed": str(len(self.unconfirmed)),
            "time": f"{self.seconds:.1f} s, {self.grades} grades",
        }
        return rows | ({"not finished": ", ".join(self.unfinished)} if self.unfinished else {})

    @property
    def title(self) -> str:
        """The target and the number of findings."""
        count = len(self.findings)
        return f"{self.target}: {'nothing found' if self.ok else f'{count} finding' + 's' * (count != 1)}"

    def __str__(self) -> str:
        """The summary as a table of two columns."""
        return text_table(self.title, list(self.rows().items()))

    def _repr_html_(self) -> str:
        return html_table(self.title, list(self.rows().items()))

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
