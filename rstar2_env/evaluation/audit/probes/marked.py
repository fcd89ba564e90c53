"""Probe for wrong answers that the grader accepts after a marker in the grader's source, such as "Final answer: ".

A grader that searches an answer for its marker followed by the gold answer also accepts a wrong answer that begins with
the gold answer (``Final answer: 12`` for 1). A text in the grader's source counts as a marker if the grader accepts
most gold answers after the text, but rejects nonsense after the text. Not covered: markers that the source computes.
"""

from __future__ import annotations

from collections import defaultdict

from rstar2_env.evaluation.audit import scripts
from rstar2_env.evaluation.audit.bench import AuditBench
from rstar2_env.evaluation.audit.golds import wrong_answers
from rstar2_env.evaluation.audit.process import AuditCall
from rstar2_env.evaluation.audit.suspicion import Suspicion, Suspicions, shown

_FIRST = 6
_READ = 0.5
_MOST_MARKERS = 4
_MOST_CAUSES = 2
_NONSENSE = "qzxv"


def marked(bench: AuditBench) -> Suspicions:
    """Yield a suspicion for wrong answers that are accepted only after a marker (``AuditBench.markers``)."""
    tried = 0
    for marker in bench.markers:
        for name, golds in bench.golds.items():
            if tried == _MOST_MARKERS or not bench.enough_time("markers of the grader"):
                return
            if _is_read(bench, marker, golds[:_FIRST]):
                tried += 1
                yield from _wrong(bench, marker, name, golds)
                break


def _call(bench: AuditBench, marker: str, gold: str, answer: str) -> AuditCall:
    return AuditCall(bench.form.gold.format(gold), marker + answer)


def _is_read(bench: AuditBench, marker: str, golds: tuple[str, ...]) -> bool:
    """Whether the grader accepts most gold answers after a marker, and rejects nonsense after the marker."""
    right = [_call(bench, marker, gold, gold) for gold in golds]
    if sum(map(bench.paid, bench.grade(right))) < _READ * len(golds):
        return False
    return not any(map(bench.paid, bench.grade([_call(bench, marker, gold, _NONSENSE) for gold in golds])))


def _wrong(bench: AuditBench, marker: str, name: str, golds: tuple[str, ...]) -> Suspicions:
    by_cause: dict[str, list[AuditCall]] = defaultdict(list)
    tried: dict[str, int] = defaultdict(int)
    found = list(wrong_answers(name, golds, bench.seed))
    calls = [_call(bench, marker, gold, answer) for _, gold, answer in found]
    plain = [bench.form.call(gold, answer) for _, gold, answer in found]
    for (cause, _, _), call, grade, without in zip(found, calls, bench.grade(calls), bench.grade(plain), strict=True):
        tried[cause] += 1
        if bench.paid(grade) and not bench.paid(without):
            by_cause[cause].append(call)
    for cause, paid in sorted(by_cause.items(), key=lambda one: -len(one[1]))[:_MOST_CAUSES]:
        call = min(paid, key=lambda one: len(one.gold) + len(one.answer))
        said = f"{shown(call.answer)} is accepted for the gold answer {shown(call.gold)}"
        script = scripts.scored(bench.target.setup, [call], f"score >= {bench.paid_at:g}")
        yield Suspicion("paid", f"{cause}, after a marker of the grader", said, script, call, len(paid), tried[cause])
