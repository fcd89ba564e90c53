r"""Keeps only problems with an integer answer, as in rStar2-Agent's training (arXiv 2508.20722, section 4.2).

The paper keeps problems whose answer is an integer, because a rule-based verifier is most reliable for integers. It
removes Project Euler's huge answers, for which its verifier timed out, without stating a bound. Covered: integers as
data sets write them (``27``, ``-3``, ``$27$``, ``\boxed{27}``, ``1,234``, ``1{,}234``, ``027``, ``27.0``), which are
converted to plain digits. Not covered: expressions with an integer value (``3^3``), which are removed.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable

from rstar2_env.problems.prepare.removed import Removed
from rstar2_env.problems.problem import Problem
from rstar2_env.verification import last_boxed

NAME = "integers"
_INTEGER = re.compile(r"(?P<sign>[+\-−]?)(?P<digits>\d{1,3}(?:(?:,|\{,\})\d{3})+|\d+)(?:\.0*)?", re.ASCII)


def integer_of(answer: str) -> str | None:
    """Return an integer answer in plain decimal digits, or ``None`` if the answer is not an integer.

    Args:
        answer: A gold answer.
    """
    text = answer.strip()
    if "\\boxed" in text and (inner := last_boxed(text)) is not None:
        text = inner.strip()
    text = text.strip("$").strip()
    match = _INTEGER.fullmatch(text)
    if match is None:
        return None
    digits = re.sub(r"\D", "", match["digits"]).lstrip("0") or "0"
    return f"-{digits}" if match["sign"] in ("-", "−") and digits != "0" else digits


def integer_answers(
    problems: Iterable[Problem], *, most_digits: int | None = None
) -> tuple[list[Problem], list[Removed]]:
    """Keep the problems with an integer answer, and write the answer in plain digits.

    Args:
        problems: The problems.
        most_digits: Maximum number of digits of an answer; ``None`` for no bound.
    """
    kept: list[Problem] = []
    removed: list[Removed] = []
    for problem in problems:
        found = integer_of(problem.answer)
        if found is None:
            removed.append(Removed.of(problem, NAME, "the answer is not an integer"))
        elif most_digits is not None and len(found.lstrip("-")) > most_digits:
            digits = len(found.lstrip("-"))
            removed.append(Removed.of(problem, NAME, f"the answer has {digits} digits, more than {most_digits}"))
        else:
            kept.append(problem if problem.answer == found else dataclasses.replace(problem, answer=found))
    return kept, removed
