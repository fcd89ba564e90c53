"""Boundary sets: problems that a model solves and a baseline does not, and vice versa.

As in MATH-Beyond (Mayilvahanan et al., arXiv 2510.11653), a problem is solved if any of its samples is right, so both
evaluations should have the same number of samples of each problem. Not covered: differences of pass rates by problem
and their significance (``rstar2_env.evaluation.figures.statistics.paired``).
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.run_folder import read_run
from rstar2_env.evaluation.figures.statistics import bootstrap
from rstar2_env.evaluation.figures.tally import EpisodeTally

SETS = ("expansion", "shrinkage", "preservation", "unsolved")
"""Names of the sets into which ``Boundary`` divides the problems that both evaluations have."""

_SET_OF = dict(zip(((False, True), (True, False), (True, True), (False, False)), SETS, strict=True))
"""The set of a problem, by two flags: whether the baseline solved it, and whether the new evaluation did."""


@dataclass(frozen=True, slots=True)
class Boundary:
    """The problems that two evaluations share, divided into sets according to the evaluations that solved them.

    Attributes:
        expansion: Problems solved by the new evaluation and not by the baseline.
        shrinkage: Problems solved by the baseline and not by the new evaluation.
        preservation: Problems solved by both evaluations.
        unsolved: Problems solved by neither evaluation.
        consolidation: Problems of ``preservation`` with a higher share of right samples than in the baseline.
        samples: Mean number of samples of a problem, in the baseline and in the new evaluation.
        baseline: Path of the baseline.
    """

    expansion: tuple[Hashable, ...]
    shrinkage: tuple[Hashable, ...]
    preservation: tuple[Hashable, ...]
    unsolved: tuple[Hashable, ...]
    consolidation: tuple[Hashable, ...]
    samples: tuple[float, float]
    baseline: str = ""

    @property
    def problems(self) -> int:
        """Number of problems that both evaluations have."""
        return sum(len(getattr(self, name)) for name in SETS)

    def shares(self) -> dict[str, float]:
        """Return each set's share (0 to 1) of the problems that both evaluations have, by the set's name."""
        return {name: len(getattr(self, name)) / self.problems for name in (*SETS, "consolidation")}

    def record(self) -> dict[str, Any]:
        """Return the sets, their shares and the intervals of these shares as JSON values."""
        names = (*SETS, "consolidation")
        intervals = {}
        for name in names:
            held = np.zeros(self.problems)
            held[: len(getattr(self, name))] = 1.0
            found = bootstrap(held)
            intervals[name] = [found.low, found.high]
        return {
            "baseline": self.baseline,
            "problems": self.problems,
            "samples": list(self.samples),
            "shares": self.shares(),
            "intervals": intervals,
            **{name: [str(problem) for problem in getattr(self, name)] for name in names},
        }


def boundary_sets(baseline: EpisodeTally, new: EpisodeTally, *, name: str = "") -> Boundary | None:
    """Divide the problems that two evaluations share into sets; return ``None`` if they share no problem.

    Args:
        baseline: Counts of the baseline's episodes.
        new: Counts of the new evaluation's episodes.
        name: Path of the baseline.
    """
    shared = [
        problem
        for problem, found in new.problems.items()
        if found.episodes and problem in baseline.problems and baseline.problems[problem].episodes
    ]
    if not shared:
        return None
    sets: dict[str, list[Hashable]] = {each: [] for each in SETS}
    better: list[Hashable] = []
    for problem in shared:
        before, after = baseline.problems[problem], new.problems[problem]
        which = _SET_OF[before.correct > 0, after.correct > 0]
        sets[which].append(problem)
        if which == "preservation" and after.correct / after.episodes > before.correct / before.episodes:
            better.append(problem)
    before_n, after_n = (
        sum(tally.problems[problem].episodes for problem in shared) / len(shared) for tally in (baseline, new)
    )
    found = {each: tuple(problems) for each, problems in sets.items()}
    return Boundary(**found, consolidation=tuple(better), samples=(before_n, after_n), baseline=name)


def check_shared(baseline: EpisodeTally, problem_ids: Iterable[str | None], *, name: str) -> None:
    """Check that a baseline has at least one of the problems to play.

    Args:
        baseline: Counts of the baseline's episodes.
        problem_ids: Ids of the problems to play; ``None`` if the environment chooses the problems.
        name: Path of the baseline.

    Raises:
        ConfigurationError: The baseline has none of the problems.
    """
    ids = list(problem_ids)
    if None not in ids and not any(problem in baseline.problems for problem in ids):
        raise ConfigurationError(
            f"The baseline {name} has no problem in common with this evaluation: give an evaluation of "
            "the same problems.",
            option="baseline",
        )


def tally_of_run(path: str | os.PathLike[str]) -> EpisodeTally:
    """Count the episodes of an evaluation, from a run's folder or a file.

    Raises:
        ConfigurationError: The run or file is not an evaluation.
    """
    run = read_run(path)
    steps = run.evaluated_steps
    if not steps:
        raise ConfigurationError(
            f"{path} does not contain episodes of an evaluation: give the folder or file of an evaluation "
            "(rstar2 eval).",
            option="baseline",
        )
    return EpisodeTally.from_entries(run.each_held_out(steps[-1]))
