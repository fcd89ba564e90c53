"""Keeps answers that the verifier can check: the gold answer earns the reward, and a changed answer does not.

A verifier accepts identical text without understanding it, so this filter requires more: the verifier must parse the
gold answer as mathematics, accept it in a box, and reject a changed answer.
"""

from __future__ import annotations

from collections.abc import Iterable

from rstar2_env.problems.perturb import changed_answer
from rstar2_env.problems.prepare.removed import Removed
from rstar2_env.problems.problem import Problem
from rstar2_env.verification import gold_fault, verify_many

NAME = "verifiable"
_AT_ONCE = 1024


def verifiable_answers(problems: Iterable[Problem]) -> tuple[list[Problem], list[Removed]]:
    """Keep the problems for which the verifier accepts the gold answer and rejects a changed answer.

    Args:
        problems: The problems.
    """
    problems = list(problems)
    kept: list[Problem] = []
    removed: list[Removed] = []
    for start in range(0, len(problems), _AT_ONCE):
        part = problems[start : start + _AT_ONCE]
        same = verify_many((problem.answer, f"\\boxed{{{problem.answer}}}") for problem in part)
        other = verify_many((problem.answer, changed_answer(problem.answer)) for problem in part)
        for problem, right, wrong in zip(part, same, other, strict=True):
            why = gold_fault(problem.answer)
            if why is None and not right.correct:
                why = f"the verifier grades it as wrong ({right.reason})"
            if why is None and wrong.correct:
                why = f"the verifier also accepts the wrong answer {changed_answer(problem.answer)}"
            if why is None:
                kept.append(problem)
            else:
                removed.append(Removed.of(problem, NAME, f"the gold answer: {why}"))
    return kept, removed
