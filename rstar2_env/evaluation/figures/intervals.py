"""The figures of an evaluation with their intervals, over all problems, by source and by difficulty.

Covered: pass@k, avg@k, maj@k and CoT-pass@k, which are means over problems, and the figures of
``rstar2_env.core.episode_metrics``, which are ratios of sums over problems. All bootstrap intervals use the same draws
of problems; a share of 0 or 1 has a Wilson interval instead. Not covered: the comparison of two evaluations.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rstar2_env.core.episode_metrics import FIGURES
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.row import FloatArray
from rstar2_env.evaluation.figures.statistics import (
    Interval,
    avg_at_k,
    bootstrap_shares,
    maj_at_k,
    pass_at_k,
    wilson,
)
from rstar2_env.evaluation.figures.tally import EpisodeTally, ProblemTally, figure_columns

MOST_GROUPS = 64
"""Maximum number of sources, or of difficulties, with figures of their own; those with the most problems are kept."""


@dataclass(frozen=True, slots=True)
class IntervalFigures:
    """Figures by name, with their intervals.

    Attributes:
        problems: Number of problems.
        episodes: Number of episodes that count (``Episode.available``).
        by_name: The figures; the value of a figure without data is NaN.
        short: Number of problems that have too few episodes for the largest k, and are left out of the figures for that
            k.
    """

    problems: int
    episodes: int
    by_name: Mapping[str, Interval]
    short: int = 0

    def numbers(self) -> dict[str, float | None]:
        """Return each figure as a number; ``None`` for a figure without data."""
        return {name: _number(found.value) for name, found in self.by_name.items()}

    def intervals(self) -> dict[str, list[float | None]]:
        """Return the two ends of each figure's interval; both are ``None`` if there are too few problems."""
        return {name: [_number(found.low), _number(found.high)] for name, found in self.by_name.items()}

    def record(self) -> dict[str, Any]:
        """Return the numbers and the intervals as JSON values, without ``short``."""
        return {
            "problems": self.problems,
            "episodes": self.episodes,
            **self.numbers(),
            "intervals": self.intervals(),
        }


def figures_of(tally: EpisodeTally, ks: Sequence[int], *, seed: int = 0) -> IntervalFigures:
    """Compute the figures over all problems.

    Args:
        tally: Counts of the episodes.
        ks: The k of pass@k, avg@k, maj@k and CoT-pass@k. A problem with fewer than k episodes that count is left out of
            the figures for that k.
        seed: Seed of the intervals' random draws.
    """
    return _figures(list(tally.problems.values()), ks, seed, tally.judged)


def figures_by(tally: EpisodeTally, ks: Sequence[int], *, seed: int = 0) -> dict[str, dict[str, IntervalFigures]]:
    """Compute the figures for the problems of each source and of each difficulty.

    Args:
        tally: Counts of the episodes.
        ks: As in ``figures_of``.
        seed: As in ``figures_of``.

    Returns:
        ``{"source": {name: figures}, "difficulty": {name: figures}}``; an inner dict is empty if the source or the
        difficulty is unknown for all problems.
    """
    kinds: dict[str, Callable[[ProblemTally], str]] = {
        "source": lambda problem: problem.source,
        "difficulty": lambda problem: problem.difficulty,
    }
    found: dict[str, dict[str, IntervalFigures]] = {}
    for kind, name_of in kinds.items():
        groups: dict[str, list[ProblemTally]] = {}
        for problem in tally.problems.values():
            if name := name_of(problem):
                groups.setdefault(name, []).append(problem)
        largest = Counter({name: len(problems) for name, problems in groups.items()}).most_common(MOST_GROUPS)
        found[kind] = {
            name: _figures(groups[name], ks, seed, tally.judged)
            for name in sorted((name for name, _ in largest), key=_place)
        }
    return found


def check_ks(ks: Iterable[int] | None, samples: int) -> tuple[int, ...]:
    """Check the requested values of k, and return them in ascending order without duplicates.

    Args:
        ks: The requested k; ``None`` means 1 and the number of samples.
        samples: Number of episodes of each start (a problem and a seed).

    Raises:
        ConfigurationError: A k is below 1 or above the number of samples, or ``ks`` is empty.
    """
    chosen = sorted({1, samples} if ks is None else set(ks))
    if chosen and chosen[0] < 1:
        raise ConfigurationError(f"k must be at least 1, not {chosen[0]}.", option="k")
    if wrong := [k for k in chosen if k > samples]:
        raise ConfigurationError(
            "k must be between 1 and n, the number of samples of each problem or seed; got k = "
            f"{wrong[0]} and n = {samples}.",
            option="n",
            value=str(max(wrong)),
        )
    if not chosen:
        raise ConfigurationError("k must be one or more whole numbers; got none.", option="k")
    return tuple(chosen)


def _figures(problems: Sequence[ProblemTally], ks: Sequence[int], seed: int, judged: bool) -> IntervalFigures:
    over: dict[str, FloatArray] = {}
    under: dict[str, FloatArray] = {}
    for kind in _AT_K if judged else ("pass", "avg", "maj"):
        for k in ks:
            values = at_k(kind, problems, k)
            known = np.isfinite(values)
            over[f"{kind}@{k}"] = np.where(known, values, 0.0)
            under[f"{kind}@{k}"] = known.astype(np.float64)
    for name, columns in figure_columns(problems).items():
        over[name], under[name] = columns
    found = bootstrap_shares(np.stack([*over.values()], axis=1), np.stack([*under.values()], axis=1), seed=seed)
    short = sum(problem.episodes < max(ks) for problem in problems)
    by_name = dict(zip(over, found, strict=True))
    for name, interval in by_name.items():
        # A bootstrap interval has no width if every problem has the same value.
        if interval.value in (0.0, 1.0) and ("@" in name or (name in FIGURES and FIGURES[name].percent)):
            by_name[name] = wilson(interval.value, int(np.count_nonzero(under[name])))
    return IntervalFigures(len(problems), sum(problem.episodes for problem in problems), by_name, short)


def at_k(kind: str, problems: Sequence[ProblemTally], k: int) -> FloatArray:
    """Return pass@k, avg@k, maj@k or CoT-pass@k of each problem, as an array of shape (problems,).

    The figure is NaN for a problem with fewer than k episodes that count (``Episode.available``).

    Args:
        kind: ``"pass"``, ``"avg"``, ``"maj"`` or ``"cot_pass"``.
        problems: The counts of each problem.
        k: Number of samples.
    """
    value = _AT_K[kind]
    return np.array([value(one, k) if one.episodes >= k else math.nan for one in problems], dtype=np.float64)


def _cot_pass(problem: ProblemTally, k: int) -> float:
    """Return CoT-pass@k of a problem: a sample is right if both its chain of thought and its answer are right.

    Wen et al., arXiv 2506.14245. Samples with a right answer whose chain was not judged are left out.
    """
    judged = problem.episodes - problem.unjudged
    return pass_at_k(judged, problem.chains, k) if judged >= k else math.nan


_AT_K: Mapping[str, Callable[[ProblemTally, int], float]] = {
    "pass": lambda problem, k: pass_at_k(problem.episodes, problem.correct, k),
    "avg": lambda problem, k: avg_at_k(problem.episodes, problem.correct, k),
    "maj": lambda problem, k: maj_at_k(*problem.votes(), k),
    "cot_pass": _cot_pass,
}


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _place(name: Hashable) -> tuple[int, float, str]:
    """Return the key by which names of sources or difficulties are sorted: numbers by value, then words."""
    try:
        return 0, float(str(name)), str(name)
    except ValueError:
        return 1, 0.0, str(name)
