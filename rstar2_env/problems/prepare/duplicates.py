"""Removes duplicates of questions, and every question that occurs with different answers.

Two questions are equal if they have the same words, ignoring case, punctuation and markup, as in decontamination
(``normal_words``), and the same mathematical signs. Not covered: the same question in other words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import blake2b

from rstar2_env.problems.decontaminate import normal_words
from rstar2_env.problems.prepare.removed import Removed
from rstar2_env.problems.problem import Problem

NAME = "duplicates"
_SIGN = re.compile(r"[+*/^=<>|%]|(?<![^\W\d])-|-(?![^\W\d])")


def question_key(question: str) -> bytes:
    """Return a digest of a question's words and signs; two questions with the same digest count as equal.

    Relations and operators count, so that "x > 3" and "x < 3" are two questions, as are "1 + 1" and "1 - 1".
    Punctuation does not count, nor does a hyphen between two letters.

    Args:
        question: A question.
    """
    signs = "".join(_SIGN.findall(question))
    words = " ".join(normal_words(question)) or " ".join(question.split())
    return blake2b(f"{words}\n{signs}".encode("utf-8", "surrogatepass"), digest_size=16).digest()


def unique_questions(problems: Iterable[Problem]) -> tuple[list[Problem], list[Removed]]:
    """Keep the first problem of each question; remove a question entirely if its problems have different answers.

    Args:
        problems: The problems. Their answers are compared as texts, ignoring white space.
    """
    problems = list(problems)
    keys = [question_key(problem.question) for problem in problems]
    answers: dict[bytes, set[str]] = {}
    first: dict[bytes, Problem] = {}
    for key, problem in zip(keys, problems, strict=True):
        answers.setdefault(key, set()).add("".join(problem.answer.split()))
        first.setdefault(key, problem)
    kept: list[Problem] = []
    removed: list[Removed] = []
    for key, problem in zip(keys, problems, strict=True):
        if len(answers[key]) > 1:
            several = ", ".join(sorted(answers[key])[:3])
            removed.append(Removed.of(problem, NAME, f"the question has different answers: {several}"))
        elif first[key] is not problem:
            removed.append(Removed.of(problem, NAME, f"{first[key].id} has the same question"))
        else:
            kept.append(problem)
    return kept, removed
