"""``Removed``: a problem that a filter left out, and why; and running a filter over a list."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass

from rstar2_env.problems.problem import Problem


@dataclass(frozen=True, slots=True)
class Removed:
    """A problem that is left out.

    Attributes:
        problem_id: Its id.
        source: Where it comes from.
        filter: The filter that left it out.
        why: What it found.
        question: Its question.
        answer: Its answer.
    """

    problem_id: str
    source: str
    filter: str
    why: str
    question: str
    answer: str

    @classmethod
    def of(cls, problem: Problem, filter: str, why: str) -> Removed:
        """Write down why a problem is left out."""
        return cls(problem.id, problem.source, filter, why, problem.question, problem.answer)

    def to_dict(self) -> dict[str, str]:
        """As one JSON line of a report."""
        return asdict(self)


def sift(
    problems: Iterable[Problem], name: str, judge: Callable[[Problem], str | None]
) -> tuple[list[Problem], list[Removed]]:
    """Divide problems into those that stay and those that are left out.

    Args:
        problems: The problems.
        name: Name of the filter.
        judge: Why a problem is left out, or ``None`` where it stays.
    """
    kept: list[Problem] = []
    removed: list[Removed] = []
    for problem in problems:
        why = judge(problem)
        if why is None:
            kept.append(problem)
        else:
            removed.append(Removed.of(problem, name, why))
    return kept, removed
