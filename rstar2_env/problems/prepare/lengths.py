"""Keeps questions whose length in characters is within bounds."""

from __future__ import annotations

from collections.abc import Iterable

from rstar2_env.problems.prepare.removed import Removed, sift
from rstar2_env.problems.problem import Problem

NAME = "length"


def fitting_lengths(problems: Iterable[Problem], *, least: int, most: int) -> tuple[list[Problem], list[Removed]]:
    """Keep the problems whose question has from ``least`` to ``most`` characters.

    Args:
        problems: The problems.
        least: Minimum number of characters of a question, without leading and trailing white space.
        most: Maximum number of characters.
    """

    def judge(problem: Problem) -> str | None:
        length = len(problem.question.strip())
        if length < least:
            return f"the question has {length} characters, fewer than {least}"
        return f"the question has {length} characters, more than {most}" if length > most else None

    return sift(problems, NAME, judge)
