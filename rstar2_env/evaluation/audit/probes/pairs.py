"""Probe for wrongly graded pairs (gold answer, answer), by cause: rejected right answers, accepted wrong answers.

A rejected right answer counts only if the grader accepts most answers that are written in the same way: only then is
the grader inconsistent. A text that states two gold answers of different values counts only if the grader accepts it
with each of them as the gold answer. The functions add the graded pairs to a ``PairTally``; its counts give the score
of the audit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from rstar2_env.evaluation.audit import scripts
from rstar2_env.evaluation.audit.bench import AuditBench
from rstar2_env.evaluation.audit.golds import differ, hedges, respelled, wrong_answers
from rstar2_env.evaluation.audit.process import AuditCall
from rstar2_env.evaluation.audit.report import CauseRow
from rstar2_env.evaluation.audit.suspicion import Suspicion, Suspicions, shown
from rstar2_env.evaluation.audit.wrongs import WRONG, number_of

_READ = 0.5
_FEW = 4
_PARTNERS = 3


@dataclass(slots=True)
class PairTally:
    """Counts of graded and of wrongly graded pairs (gold answer, answer), by cause, with examples."""

    causes: dict[tuple[bool, str], CauseRow] = field(default_factory=dict)
    examples: dict[tuple[bool, str], list[tuple[AuditCall, ...]]] = field(default_factory=lambda: defaultdict(list))

    def add(self, cause: str, calls: Sequence[tuple[AuditCall, ...]], wrong: Sequence[bool], *, right: bool) -> None:
        """Count (gold answer, answer) pairs of one cause.

        Args:
            cause: Kind of spelling or mistake that these pairs test, such as "a digit appended".
            calls: For each pair, the grader's calls that together show whether it was graded wrongly.
            wrong: For each pair, whether it was graded wrongly.
            right: Whether the answers of these pairs are right.
        """
        count = self.causes.setdefault((right, cause), CauseRow(cause, right))
        count.tried += len(calls)
        count.wrongly += sum(wrong)
        self.examples[right, cause] += [one for one, is_wrong in zip(calls, wrong, strict=True) if is_wrong]

    @property
    def counted(self) -> tuple[int, int]:
        """Number of pairs that count in the score, and number of these pairs that were graded wrongly."""
        counted = [count for count in self.causes.values() if count.counts]
        return sum(count.tried for count in counted), sum(count.wrongly for count in counted)


def pairs(bench: AuditBench, tally: PairTally) -> Suspicions:
    """Grade right and wrong answers of every class; yield a suspicion for each cause with wrong grades."""
    for name, golds in bench.golds.items():
        if bench.enough_time(f"pairs of {name}"):
            _right(bench, tally, name, golds)
            _wrong(
                bench, tally, ((cause, gold, answer) for cause, gold, answer in wrong_answers(name, golds, bench.seed))
            )
            _hedged(bench, tally, golds)
    yield from _suspicions(bench, tally)


def own_pairs(bench: AuditBench, tally: PairTally) -> Suspicions:
    """Grade each gold answer of the target's own problems as an answer to its own problem and to other problems."""
    known = [(question, gold) for question, gold in bench.target.problems if gold]
    own = [bench.form.call(gold, gold, question) for question, gold in known]
    refused = [not bench.paid(grade) for grade in bench.grade(own)]
    if sum(refused) <= _READ * len(own):
        tally.add("the gold itself", [(call,) for call in own], refused, right=True)
    by_cause: dict[str, list[tuple[AuditCall, ...]]] = defaultdict(list)
    for (question, gold), (next_question, other) in pairwise(known):
        if not differ(gold, other):
            continue
        by_cause["the gold answer of another problem"].append((bench.form.call(gold, other, question),))
        for cause, text in hedges(gold, other):
            both = bench.form.call(gold, text, question), bench.form.call(other, text, next_question)
            by_cause[cause].append(both)
    for question, gold in known:
        for cause, answer in WRONG[name](gold) if (name := _class_of(gold)) else ():
            if differ(gold, answer):
                by_cause[cause].append((bench.form.call(gold, answer, question),))
    for cause, together in by_cause.items():
        paid = [all(bench.paid(grade) for grade in bench.grade(calls)) for calls in together]
        if sum(paid) <= _READ * len(paid) or len(together[0]) > 1:  # otherwise the problems have many answers
            tally.add(cause, together, paid, right=False)
    yield from _suspicions(bench, tally)


def _class_of(gold: str) -> str:
    """Return the class to which a gold answer of the target's own problems belongs; "" if there is none."""
    if gold.lstrip("-").isdecimal():
        return "integers"
    if number_of(gold) is not None and "." in gold:
        return "decimals"
    return "words" if gold.isalpha() and len(gold) >= _FEW else ""


def _right(bench: AuditBench, tally: PairTally, name: str, golds: Sequence[str]) -> None:
    own = bench.calls((gold, gold) for gold in golds)
    refused = [grade.score is not None and not bench.paid(grade) for grade in bench.grade(own)]
    if sum(refused) <= _READ * len(own):
        tally.add("the gold itself", [(call,) for call in own], refused, right=True)
    by_cause: dict[str, list[AuditCall]] = defaultdict(list)
    for gold in golds:
        for cause, answer in respelled(name, gold):
            if answer != gold:
                by_cause[cause].append(bench.form.call(gold, answer))
    for cause, calls in by_cause.items():
        refused = [grade.score is not None and not bench.paid(grade) for grade in bench.grade(calls)]
        key = f"{cause} ({name})"
        tally.add(key, [(call,) for call in calls], refused, right=True)
        tally.causes[True, key].counts = len(calls) >= _FEW and sum(refused) <= _READ * len(calls)


def _wrong(bench: AuditBench, tally: PairTally, found: Iterable[tuple[str, str, str]]) -> None:
    by_cause: dict[str, list[AuditCall]] = defaultdict(list)
    for cause, gold, answer in found:
        by_cause[cause].append(bench.form.call(gold, answer))
    for cause, calls in by_cause.items():
        paid = [bench.paid(grade) for grade in bench.grade(calls)]
        tally.add(cause, [(call,) for call in calls], paid, right=False)


def _hedged(bench: AuditBench, tally: PairTally, golds: Sequence[str]) -> None:
    partners = [(one, other) for one, other in pairwise(golds) if differ(one, other)]
    both: dict[str, list[tuple[AuditCall, AuditCall]]] = defaultdict(list)
    for one, other in partners[: 2 * _PARTNERS]:
        for cause, text in hedges(one, other):
            both[cause].append((bench.form.call(one, text), bench.form.call(other, text)))
        if bench.form.answer != "{}":
            marked = "\n".join(map(bench.form.answer.format, (one, other)))
            call = AuditCall(bench.form.gold.format(one), marked), AuditCall(bench.form.gold.format(other), marked)
            both["two marked answers in the target's format"].append(call)
    for cause, calls in both.items():
        paid = [all(bench.paid(grade) for grade in bench.grade(two)) for two in calls]
        tally.add(cause, calls, paid, right=False)


def _suspicions(bench: AuditBench, tally: PairTally) -> Iterator[Suspicion]:
    for (right, cause), examples in sorted(tally.examples.items(), key=lambda one: -len(one[1])):
        count = tally.causes[right, cause]
        examples = [calls for calls in examples if not any(bench.known[call].error for call in calls)]
        if not count.counts or not examples:
            continue
        calls = min(examples, key=lambda calls: sum(len(call.gold) + len(call.answer) for call in calls))
        call = calls[0]
        golds = " and ".join(shown(one.gold) for one in calls)
        said = f"{shown(call.answer)} is {'rejected' if right else 'accepted'} with the gold answer {golds}"
        script = scripts.scored(bench.target.setup, calls, f"score {'<' if right else '>='} {bench.paid_at:g}")
        kind = "refused" if right else "paid"
        yield Suspicion(kind, cause, said, script, call, count.wrongly, count.tried)
