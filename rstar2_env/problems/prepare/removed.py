"""``Removed``: a problem that a filter removed, with the reason; and ``sift``, which applies a filter to problems."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass

from rstar2_env.problems.problem import Problem


@dataclass(frozen=True, slots=True)
class Removed:
    """A problem that a filter removed, with the reason.

    Attributes:
        problem_id: The problem's id.
        source: The problem's source.
        filter: Name of the filter that removed the problem.
        why: The reason.
        question: The question.
        answer: The answer.
    """

    problem_id: str
    source: str
    filter: str
    why: str
    question: str
    answer: str

    @classmethod
    def of(cls, problem: Problem, filter: str, why: str) -> Removed:
        """Return a record of a removed problem, with the filter and the reason."""
        return cls(problem.id, problem.source, filter, why, problem.question, problem.answer)

    def to_dict(self) -> dict[str, str]:
        """Return the record as JSON values, for one line of a report."""
        return asdict(self)


def sift(
    problems: Iterable[Problem], name: str, judge: Callable[[Problem], str | None]
) -> tuple[list[Problem], list[Removed]]:
    """Divide problems into those that a filter keeps and those that it removes.

    Args:
        problems: The problems.
        name: Name of the filter.
        judge: Returns why a problem is removed, or ``None`` to keep it.
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
