"""Statistics of problems."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

from rstar2_env.problems.problem import Problem

_FRACTION = re.compile(r"-?\d+\s*/\s*\d+|-?\\[dt]?frac\{-?\d+\}\{\d+\}")


def problem_stats(problems: Iterable[Problem]) -> dict[str, Any]:
    """Statistics of some problems, as JSON values; the problems are iterated once and not kept in memory.

    Args:
        problems: At least one problem.

    Returns:
        ``problems`` (their number), ``questions_that_repeat`` (number of problems whose question has occurred before),
        ``answers_that_contradict`` (number of those problems whose answer differs from the question's first answer),
        ``question_characters`` and ``answer_characters`` (``least``, ``median``, ``p95``, ``most``),
        ``distinct_characters`` (number of different characters in all questions), and three counts of problems:
        ``answers`` (by ``answer_kind``), ``sources`` (by source) and ``fields`` (by each field of ``meta``).
    """
    questions: dict[int, int] = {}
    characters: set[str] = set()
    question_lengths: list[int] = []
    answer_lengths: list[int] = []
    kinds: Counter[str] = Counter()
    sources: Counter[str] = Counter()
    fields: Counter[str] = Counter()
    contradictions = 0
    for problem in problems:
        question, answer = hash(" ".join(problem.question.split())), hash("".join(problem.answer.split()))
        if questions.setdefault(question, answer) != answer:
            contradictions += 1
        characters.update(problem.question)
        question_lengths.append(len(problem.question))
        answer_lengths.append(len(problem.answer))
        kinds[answer_kind(problem.answer)] += 1
        sources[problem.source or "none"] += 1
        fields.update(map(str, problem.meta))
    return {
        "problems": len(question_lengths),
        "questions_that_repeat": len(question_lengths) - len(questions),
        "answers_that_contradict": contradictions,
        "question_characters": _spread(question_lengths),
        "answer_characters": _spread(answer_lengths),
        "distinct_characters": len(characters),
        "answers": dict(kinds.most_common()),
        "sources": dict(sources.most_common()),
        "fields": dict(fields.most_common()),
    }


def answer_kind(answer: str) -> str:
    """The kind of an answer: a whole number, a decimal number, a fraction, a choice, mathematics, or text."""
    text = answer.strip().strip("$").strip()
    try:
        value = Decimal(text.replace(",", "") if re.fullmatch(r"-?\d{1,3}(,\d{3})+(\.\d+)?", text) else text)
    except InvalidOperation:
        return _kind_of_text(text)
    if not value.is_finite():
        return "text"
    return "whole number" if "." not in text and "e" not in text.lower() else "decimal number"


def _kind_of_text(text: str) -> str:
    if _FRACTION.fullmatch(text):
        return "fraction"
    if re.fullmatch(r"\(?[A-Z]\)?", text):
        return "choice"
    if "\\" in text or re.search(r"[=^<>]|\d", text):
        return "mathematics"
    return "text"


def _spread(lengths: list[int]) -> dict[str, float]:
    ordered = sorted(lengths)
    p95 = ordered[min(len(ordered) - 1, int(Fraction(95, 100) * len(ordered)))]
    return {"least": ordered[0], "median": statistics.median(ordered), "p95": p95, "most": ordered[-1]}
