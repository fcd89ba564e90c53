"""Counts and measures problems."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from rstar2_env.problems.problem import Problem


def problem_stats(problems: Sequence[Problem]) -> dict[str, Any]:
    """Figures of some problems, as JSON can hold them.

    Args:
        problems: At least one.

    Returns:
        ``problems`` (how many), ``questions_that_repeat`` (how many have the question of an earlier one),
        ``question_characters`` and ``answer_characters`` (``least``, ``median``, ``most``), ``distinct_characters``
        (in all questions), ``answers`` (by kind), ``sources``, and ``fields`` (how many problems have which ``meta``).
    """
    questions = [" ".join(problem.question.split()) for problem in problems]
    return {
        "problems": len(problems),
        "questions_that_repeat": len(questions) - len(set(questions)),
        "question_characters": _spread([len(problem.question) for problem in problems]),
        "answer_characters": _spread([len(problem.answer) for problem in problems]),
        "distinct_characters": len(set().union(*(problem.question for problem in problems))),
        "answers": _tally(Counter(_kind(problem.answer) for problem in problems)),
        "sources": _tally(Counter(problem.source or "none" for problem in problems)),
        "fields": _tally(Counter(name for problem in problems for name in problem.meta)),
    }


def _spread(lengths: list[int]) -> dict[str, float]:
    return {"least": min(lengths), "median": statistics.median(lengths), "most": max(lengths)}


def _kind(answer: str) -> str:
    try:
        value = Decimal(answer.strip())
    except InvalidOperation:
        return "text"
    if not value.is_finite():
        return "text"
    return "whole number" if "." not in answer and "e" not in answer.lower() else "decimal number"


def _tally(counter: Counter[str]) -> dict[str, int]:
    return dict(counter.most_common())
