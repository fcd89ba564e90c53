"""Keeps problems by how often a policy solved them.

This implements two filters of rStar2-Agent (arXiv 2508.20722, sections 4.2 and 4.3): at least two of 16 samples of a
strong model must agree with the label, which removes labels that no sample reaches; and before stage 3, problems that
the latest policy solves in all of 8 samples are dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.problems.prepare.removed import Removed, sift
from rstar2_env.problems.problem import Problem

NAME = "solved"


def solved_between(
    problems: Iterable[Problem],
    outcomes: Mapping[str, tuple[int, int]],
    *,
    least: int = 0,
    drop_all: bool = False,
) -> tuple[list[Problem], list[Removed]]:
    """Keep the problems that were solved often enough, and optionally not always.

    Args:
        problems: The problems.
        outcomes: Number of correct and of played episodes of each problem, by its id.
        least: Minimum number of correct episodes.
        drop_all: Remove problems that every episode solved.

    Raises:
        ConfigurationError: A problem has no episodes.
    """
    problems = list(problems)
    unplayed = [problem.id for problem in problems if outcomes.get(problem.id, (0, 0))[1] == 0]
    if unplayed:
        raise ConfigurationError(
            f"{len(unplayed)} of {len(problems)} problems have no episodes, among them "
            f"{unplayed[0]!r}: play them all before filtering."
        )

    def judge(problem: Problem) -> str | None:
        right, played = outcomes[problem.id]
        if right < least:
            return f"{right} of {played} episodes are right, fewer than {least}"
        return f"all {played} episodes are right" if drop_all and right == played else None

    return sift(problems, NAME, judge)
