"""``AuditBench``: grades answers with the audited grader, which runs in a separate process, and caches the grades."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from rstar2_env.evaluation.audit.golds import CLASSES, differ, golds_of, wrong_answers
from rstar2_env.evaluation.audit.process import AuditCall, AuditGrade, GraderProcess, TargetError
from rstar2_env.evaluation.audit.targets.target import Target

PLAIN_SURROUNDING: Mapping[str, str | None] = {"PYTHONHASHSEED": "0"}
"""Environment variables that every process of the target gets; a probe may add others."""

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
_LETTERS = re.compile("[A-Za-z]{3}")
_START = re.compile(r"(?:\(\?[a-z]+\))?\^?((?:[^\\\[\](){}.*+?^$|]|\\[^A-Za-z0-9])*)")
"""Matches the literal text at the beginning of a regular expression."""
_MOST_MARKERS = 40
_PROBES = ("7", "12", "365", "0.5", "Paris", "London", "B", "yes", "1/2", "x+1")
_READ = 0.5
"""A grader supports a class of gold answers if it accepts at least this share of them when the answer is the gold
answer itself."""
_TOLD_APART = 0.6
"""A grader distinguishes right from wrong answers in a class of gold answers if it rejects at least this share of the
wrong answers."""


def _start_of(pattern: str) -> str:
    """Return the literal text with which a regular expression begins; "" if it begins with something else."""
    match = _START.match(pattern)
    return re.sub(r"\\(.)", r"\1", match[1]) if match is not None else ""


def _braced(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


@dataclass(frozen=True, slots=True)
class AnswerForm:
    r"""The format in which the audited grader expects gold answers and answers.

    Attributes:
        gold: Template for ``str.format``, in which ``{}`` stands for the gold answer.
        answer: Template for ``str.format``, in which ``{}`` stands for the answer (``\boxed{{{}}}``).
    """

    gold: str = "{}"
    answer: str = "{}"

    def call(self, gold: str, answer: str, question: str = "") -> AuditCall:
        """Return the call that grades ``answer``, with the gold answer and the answer written in this format."""
        return AuditCall(self.gold.format(gold), self.answer.format(answer), question)


@dataclass
class AuditBench:
    """Grades answers with one target, and caches the grade of every call.

    Attributes:
        target: The audited grader.
        folder: Folder for files of the audit.
        grade_timeout_s: Time limit of one grade, in seconds.
        until: Time at which the audit must end, on the clock ``time.monotonic``.
        seed: Seed of the randomly generated gold answers.
        form: The format of gold answers and answers.
        paid_at: Smallest score that counts as accepted.
        golds: The gold answers that the target supports, by class.
        unread: Gold answers, by class, of each class that is not audited because the target accepts right answers but
            also many wrong answers in it. Empty if the target does so in every class: then all classes are audited.
        texts: Short literals (strings, numbers) in the target's source file, as strings.
        names: Names of attributes and imports in the target's source file.
        unfinished: Names of the checks that were skipped or cut short because the time was used up.
        known: Cache of grades, by call.
        fresh: The number that ``next_folder`` returned last.
        unsteady: Whether repeating a call gives different grades; if so, later probes do not compare grades of the same
            call under other conditions.
    """

    target: Target
    folder: Path
    grade_timeout_s: float
    until: float
    seed: int = 0
    form: AnswerForm = field(default_factory=AnswerForm)
    paid_at: float = 0.5
    golds: dict[str, tuple[str, ...]] = field(default_factory=dict)
    unread: dict[str, tuple[str, ...]] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    known: dict[AuditCall, AuditGrade] = field(default_factory=dict)
    fresh: int = 0
    unsteady: bool = False

    def __post_init__(self) -> None:
        self._grader = self.process("plain")

    def process(self, folder: str, **options: object) -> GraderProcess:
        """Return a separate process that runs the target in its own folder; the first call to grade starts the process.

        Args:
            folder: Name of the folder.
            **options: Fields of ``GraderProcess``.
        """
        given: dict[str, object] = {"variables": PLAIN_SURROUNDING, "setup": self.target.setup, **options}
        return GraderProcess(folder=self.folder / folder, grade_timeout_s=self.grade_timeout_s, **given)  # type: ignore[arg-type]  # the fields vary

    def close(self) -> None:
        """End the process of the target."""
        self._grader.stop()

    def open(self, classes: Sequence[str] = ()) -> None:
        """Load the target, and find the answer format that it expects and the classes of gold answers that it supports.

        If the target does not distinguish right from wrong answers in any class, because it accepts everything, all
        classes whose gold answers it accepts are used.

        Args:
            classes: The classes to use; empty means the classes that the target supports and whose answers it
                distinguishes.

        Raises:
            TargetError: The target cannot be loaded, or does not accept any gold answer as the answer to itself.
        """
        self._grader.grade([])
        self.texts, self.names = ([], []) if self.target.own_problems else self._grader_texts()
        if self.target.own_problems:
            self._find_form([(gold, question) for question, gold in self.target.problems if gold])
            return
        self._find_form([(gold, "") for gold in _PROBES])
        golds = {name: golds_of(name, self.seed) for name in classes or CLASSES}
        if not classes:
            paid = self._paid_classes(golds)
            if not paid:
                self._grade_alternately(golds)
                paid = self._paid_classes(golds)
            golds = {name: each for name, each in paid.items() if self._tells_apart(name, each)} or paid
            self.unread = {name: each for name, each in paid.items() if name not in golds}
        if not golds:
            raise TargetError(self._why_nothing_is_read())
        self.golds = golds

    @property
    def markers(self) -> list[str]:
        """Texts in the target's source that may be markers before an answer, each with and without a final space."""
        starts = [_start_of(text) for text in self.texts]
        found = [text for text in (*self.texts, *starts) if _LETTERS.search(text)]
        return list(dict.fromkeys(one for text in found for one in (text, f"{text.rstrip()} ")))

    def calls(self, pairs: Iterable[tuple[str, str]], question: str = "") -> list[AuditCall]:
        """Return the calls that grade pairs of gold answer and answer, in the target's format."""
        return [self.form.call(gold, answer, question) for gold, answer in pairs]

    def grade(self, calls: Sequence[AuditCall]) -> list[AuditGrade]:
        """Return the grades of calls; a call that was graded before is not graded again."""
        new = list(dict.fromkeys(call for call in calls if call not in self.known))
        self.known.update(zip(new, self._grader.grade(new), strict=True))
        return [self.known[call] for call in calls]

    def pays(self, call: AuditCall) -> bool:
        """Whether the target marks the answer passed in this call as correct; see ``paid``."""
        return self.paid(self.grade([call])[0])

    def paid(self, grade: AuditGrade) -> bool:
        """Whether a grade means that the target accepted the answer."""
        return grade.score is not None and grade.score >= self.paid_at

    def next_folder(self) -> int:
        """Return a number that this audit has not used yet, for the name of a new process's folder."""
        self.fresh += 1
        return self.fresh

    def enough_time(self, probe: str) -> bool:
        """Return whether the audit has time left; if it has none, add the check's name ``probe`` to ``unfinished``."""
        if time.monotonic() < self.until:
            return True
        if probe not in self.unfinished:
            self.unfinished.append(probe)
        return False

    def sample(self, count: int) -> list[str]:
        """Return at most ``count`` gold answers, alternating between all classes that the target supports."""
        rows = [list(golds) for golds in self.golds.values()]
        mixed = [row[at] for at in range(max(map(len, rows), default=0)) for row in rows if at < len(row)]
        return mixed[:count]

    def _grader_texts(self) -> tuple[list[str], list[str]]:
        texts, names = self._grader.ask("texts_of(_target) if '_target' in globals() else [[], []]")
        return texts, names

    def _find_form(self, golds: Sequence[tuple[str, str]]) -> None:
        """Choose the format with which the target distinguishes the most gold answers.

        The target distinguishes a gold answer if it scores this gold answer itself higher than another gold answer,
        which serves as a wrong answer. A format has two parts: one for the gold answer and one for the answer. All
        answer parts are tried with one gold part, then with the next, until a format distinguishes at least half of the
        gold answers. ``paid_at`` becomes the mean of two numbers: the median score of the distinguished gold answers,
        and the median score of the wrong answers.

        Args:
            golds: Pairs of gold answer and question.
        """
        best, told_apart = AnswerForm(), list[tuple[float, float]]()
        own = [f"{_braced(marker)}{{}}" for marker in self.markers[:_MOST_MARKERS]]
        forms = [(gold_form, _ANSWER_FORMS) for gold_form in _GOLD_FORMS[: 1 if self.target.own_problems else None]]
        for gold_form, answer_forms in (*forms, ("{}", own)):
            for answer_form in answer_forms:
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

    def _paid_classes(self, golds: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        return {name: each for name, each in golds.items() if self.enough_time("classes of golds") and self._pays(each)}

    def _grade_alternately(self, golds: Mapping[str, Sequence[str]]) -> None:
        """Grade all gold answers again, each after a wrong answer.

        A grader whose grades depend on earlier answers may reject right answers because it has graded several of them
        in a row.
        """
        for each in golds.values():
            if self.enough_time("classes of golds"):
                pairs = zip(each, [*each[1:], *each[:1]], strict=True)
                calls = self.calls(pair for gold, other in pairs for pair in ((gold, other), (gold, gold)))
                self.known.update(zip(calls, self._grader.grade(calls), strict=True))

    def _pays(self, golds: Sequence[str]) -> bool:
        own = [self.paid(grade) for grade in self.grade(self.calls((gold, gold) for gold in golds))]
        return sum(own) >= _READ * len(golds)

    def _tells_apart(self, name: str, golds: Sequence[str]) -> bool:
        pairs = [(gold, answer) for _, gold, answer in wrong_answers(name, golds, self.seed)]
        refused = [not self.paid(grade) for grade in self.grade(self.calls(pairs))]
        return sum(refused) >= _TOLD_APART * len(refused)

    def _why_nothing_is_read(self) -> str:
        if self.unfinished:
            return (
                "grading is so slow that the time limit of the audit passed before one class of gold "
                "answers was graded; set a longer time limit for the audit (timeout_s, --timeout)"
            )
        errors = [(call, grade.error) for call, grade in self.known.items() if grade.error]
        if len(errors) > len(self.known) / 2:
            call, error = errors[0]
            return (
                f"most grades are errors, for example for the answer {call.answer!r} with the gold answer "
                f"{call.gold!r}: {error}"
            )
        return (
            "it rejects the correct answers of every class of gold answers, in each of "
            f"{len(_ANSWER_FORMS)} formats; audit a function of (gold, answer) that converts both to the "
            "format that the grader expects, or name the classes of gold answers with --golds"
        )
