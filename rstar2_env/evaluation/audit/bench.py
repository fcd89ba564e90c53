"""The bench of an audit: the target in its process, the form in which it takes answers, and the grades so far."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from rstar2_env.evaluation.audit.golds import CLASSES, differ, golds_of, wrong_answers
from rstar2_env.evaluation.audit.process import AuditCall, AuditGrade, GraderProcess, TargetError
from rstar2_env.evaluation.audit.targets.target import Target

PLAIN_SURROUNDING: Mapping[str, str | None] = {"PYTHONHASHSEED": "0"}
"""Environment variables of the grades that all others are compared with."""

_GOLD_FORMS = ("{}", "${}$", "\\boxed{{{}}}", "#### {}")
_ANSWER_FORMS = (
    "{}",
    "\\boxed{{{}}}",
    "<answer>{}</answer>",
    "<answer>\\boxed{{{}}}</answer>",
    "<think>\n\n</think>\n\\boxed{{{}}}",
    "<think>\n\n</think>\n<answer>{}</answer>",
    "${}$",
    "#### {}",
    "The answer is {}.",
    "Answer: {}",
    "ANSWER: {}",
    "```\n{}\n```",
)
_PROBES = ("7", "12", "365", "0.5", "Paris", "London", "B", "yes", "1/2", "x+1")
_READ = 0.5
"""Least share of a class's golds that the grader pays for themselves, for a class that it reads."""
_TOLD_APART = 0.6
"""Least share of a class's wrong answers that the grader refuses, for a class that it reads."""


@dataclass(frozen=True, slots=True)
class AnswerForm:
    r"""How golds and answers are written for the target.

    Attributes:
        gold: Template of a gold.
        answer: Template of an answer (``\boxed{{{}}}``).
    """

    gold: str = "{}"
    answer: str = "{}"

    def call(self, gold: str, answer: str, question: str = "") -> AuditCall:
        """Return the call that grades an answer."""
        return AuditCall(self.gold.format(gold), self.answer.format(answer), question)


@dataclass
class AuditBench:
    """Grades answers of one target; every pair is graded once.

    Attributes:
        target: The target.
        folder: Folder for files of the audit.
        grade_timeout_s: Longest time of one grade, in seconds.
        until: End of the audit's time, on the monotonic clock.
        seed: Seed of the golds.
        form: The form of golds and answers.
        paid_at: Least score that counts as paid.
        golds: The golds that the target reads, by class.
        texts: Short texts and numbers in the source of the target.
        unfinished: Probes that the time did not suffice for.
        known: The grade of each call so far.
        fresh: Number of fresh folders so far.
        unsteady: Whether repeated calls get different grades, so that no other comparison of grades says anything.
    """

    target: Target
    folder: Path
    grade_timeout_s: float
    until: float
    seed: int = 0
    form: AnswerForm = field(default_factory=AnswerForm)
    paid_at: float = 0.5
    golds: dict[str, tuple[str, ...]] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    known: dict[AuditCall, AuditGrade] = field(default_factory=dict)
    fresh: int = 0
    unsteady: bool = False

    def __post_init__(self) -> None:
        self._grader = self.process("plain")

    def process(self, folder: str, **options: object) -> GraderProcess:
        """Return another process of the target, in its own folder; it starts with its first call.

        Args:
            folder: Name of the folder.
            **options: Fields of ``GraderProcess``.
        """
        given: dict[str, object] = {"variables": PLAIN_SURROUNDING, "setup": self.target.setup, **options}
        return GraderProcess(folder=self.folder / folder, grade_timeout_s=self.grade_timeout_s, **given)  # type: ignore[arg-type]  # the fields vary

    def close(self) -> None:
        """End the process."""
        self._grader.stop()

    def open(self, classes: Sequence[str] = ()) -> None:
        """Load the target, and find the form of its answers and the classes of golds that it reads.

        If it tells no class apart, the classes count whose golds it pays, since it pays all else too.

        Args:
            classes: The classes to use; without any, those that the target reads and distinguishes.

        Raises:
            TargetError: The target cannot be loaded, or pays no gold for itself.
        """
        self._grader.grade([])
        self.texts = [] if self.target.own_problems else self._grader_texts()
        if self.target.own_problems:
            self._find_form([(gold, question) for question, gold in self.target.problems if gold])
            return
        self._find_form([(gold, "") for gold in _PROBES])
        golds = {name: golds_of(name, self.seed) for name in classes or CLASSES}
        if not classes:
            paid = {
                name: each for name, each in golds.items() if self.enough_time("classes of golds") and self._pays(each)
            }
            golds = {name: each for name, each in paid.items() if self._tells_apart(name, each)} or paid
        if not golds:
            raise TargetError(self._why_nothing_is_read())
        self.golds = golds

    def calls(self, pairs: Iterable[tuple[str, str]], question: str = "") -> list[AuditCall]:
        """Return the calls of pairs of gold and answer, in the target's form."""
        return [self.form.call(gold, answer, question) for gold, answer in pairs]

    def grade(self, calls: Sequence[AuditCall]) -> list[AuditGrade]:
        """Grade calls, each once."""
        new = list(dict.fromkeys(call for call in calls if call not in self.known))
        self.known.update(zip(new, self._grader.grade(new), strict=True))
        return [self.known[call] for call in calls]

    def pays(self, call: AuditCall) -> bool:
        """Whether the target pays a call."""
        return self.paid(self.grade([call])[0])

    def paid(self, grade: AuditGrade) -> bool:
        """Whether a grade counts as paid."""
        return grade.score is not None and grade.score >= self.paid_at

    def next_folder(self) -> int:
        """Return the number of a folder that no process has used."""
        self.fresh += 1
        return self.fresh

    def enough_time(self, probe: str) -> bool:
        """Whether there is time left; without it, the probe is noted as unfinished."""
        if time.monotonic() < self.until:
            return True
        if probe not in self.unfinished:
            self.unfinished.append(probe)
        return False

    def sample(self, count: int) -> list[str]:
        """Return golds of all classes that the target reads, the classes in turn."""
        rows = [list(golds) for golds in self.golds.values()]
        mixed = [row[at] for at in range(max(map(len, rows), default=0)) for row in rows if at < len(row)]
        return mixed[:count]

    def _grader_texts(self) -> list[str]:
        found: list[str] = self._grader.ask("texts_of(_target) if '_target' in globals() else []")
        return found

    def _find_form(self, golds: Sequence[tuple[str, str]]) -> None:
        """Choose the first form in which the most golds are paid more than the other golds are."""
        best, told_apart = AnswerForm(), list[tuple[float, float]]()
        for gold_form in _GOLD_FORMS if not self.target.own_problems else ("{}",):
            for answer_form in _ANSWER_FORMS:
                if told_apart and not self.enough_time("forms of answers"):
                    break
                form, found = AnswerForm(gold_form, answer_form), list[tuple[float, float]]()
                for (gold, question), (other, _) in zip(golds, [*golds[1:], *golds[:1]], strict=True):
                    if not differ(gold, other):
                        continue
                    right, wrong = self.grade([form.call(gold, gold, question), form.call(gold, other, question)])
                    if right.score is not None and wrong.score is not None and right.score > wrong.score:
                        found.append((right.score, wrong.score))
                if len(found) > len(told_apart):
                    best, told_apart = form, found
            if len(told_apart) >= len(golds) / 2:
                break
        self.form = best
        if told_apart:
            self.paid_at = (median(right for right, _ in told_apart) + median(wrong for _, wrong in told_apart)) / 2

    def _pays(self, golds: Sequence[str]) -> bool:
        own = [self.paid(grade) for grade in self.grade(self.calls((gold, gold) for gold in golds))]
        return sum(own) >= _READ * len(golds)

    def _tells_apart(self, name: str, golds: Sequence[str]) -> bool:
        pairs = [(gold, answer) for _, gold, answer in wrong_answers(name, golds, self.seed)]
        refused = [not self.paid(grade) for grade in self.grade(self.calls(pairs))]
        return sum(refused) >= _TOLD_APART * len(refused)

    def _why_nothing_is_read(self) -> str:
        if self.unfinished:
            return "its grades take too long: the time ended before a class of golds was read; give a longer timeout"
        errors = [(call, grade.error) for call, grade in self.known.items() if grade.error]
        if len(errors) > len(self.known) / 2:
            call, error = errors[0]
            return f"most grades are errors, such as that of {call.answer!r} where the gold is {call.gold!r}: {error}"
        return (
            f"it pays no class of golds for themselves, in none of {len(_ANSWER_FORMS)} forms; audit a function of "
            "(gold, answer) that writes both as it expects them, or name the classes that it is meant for"
        )
