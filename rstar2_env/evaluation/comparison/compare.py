"""Compare two or more evaluations, paired by problem: differences with intervals and p-values.

The first evaluation is the baseline; every other evaluation is compared with it. Covered: for the problems that a run
and the baseline both played, pass@k, maj@k and the figures of ``rstar2_env.core.episode_metrics``; the curves of pass@k
and the k at which they cross; the problems whose share of right samples changed. Not covered: corrections of p-values
if many runs are compared; the picture (``rstar2_env.evaluation.comparison.picture``).
"""

from __future__ import annotations

import html
import math
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.files.json_values import jsonable
from rstar2_env.core.row import FloatArray
from rstar2_env.core.run_folder import EpisodeEntry
from rstar2_env.core.text import html_table, text_table
from rstar2_env.evaluation.comparison.exact_tests import false_shares, fisher_exact
from rstar2_env.evaluation.figures.intervals import at_k
from rstar2_env.evaluation.figures.statistics import RESAMPLES, Interval, bootstrap_shares, paired
from rstar2_env.evaluation.figures.tally import EpisodeTally, ProblemTally, figure_columns
from rstar2_env.evaluation.figures.text import NOTHING
from rstar2_env.evaluation.stored.runs import Stored

if TYPE_CHECKING:
    from rstar2_env.evaluation.figures.plot import Plot

HEADINGS = ("", "base", "other", "diff", "95 %", "p")
CHANGED_HEADINGS = ("problem", "base", "other", "p", "q")

_ENOUGH = 0.9
"""A value of k is used if at least this share of the problems has k or more samples in both compared runs."""
_POINTS = 40
"""Maximum number of points of a pass@k curve."""


@dataclass(frozen=True, slots=True)
class ComparedFigure:
    """One figure (a number such as pass@1) of two compared runs.

    Attributes:
        baseline: The figure of the baseline, with its interval.
        other: The figure of the other run, with its interval.
        difference: The other run's value minus the baseline's, with its interval over problems.
        p_value: Probability of a difference at least as large, in either direction, if the runs are equally good.
    """

    baseline: Interval
    other: Interval
    difference: Interval
    p_value: float


@dataclass(frozen=True, slots=True)
class Changed:
    """A problem that one run solves more often than the other.

    Attributes:
        problem: Id of the problem; if it has none, the number of its start (a problem and a seed).
        baseline: The baseline's number of right samples, and its number of samples.
        other: The other run's number of right samples, and its number of samples.
        p_value: Two-sided p-value of Fisher's exact test, which compares the two shares of right samples.
        q_value: Expected share of false findings among the problems with this p-value or a smaller one (Benjamini and
            Hochberg).
    """

    problem: str
    baseline: tuple[int, int]
    other: tuple[int, int]
    p_value: float
    q_value: float

    @property
    def difference(self) -> float:
        """The other run's share of right samples minus the baseline's."""
        return self.other[0] / self.other[1] - self.baseline[0] / self.baseline[1]


@dataclass(frozen=True, slots=True)
class RunCounts:
    """Name and size of a compared run.

    Attributes:
        name: Name of the run, as the user wrote it.
        step: The step of training after which its episodes were played; 0 in an evaluation.
        problems: Number of problems with at least one episode that counts (``Episode.available``).
        episodes: Number of episodes that count (``Episode.available``).
        uncounted: Number of episodes that do not count: failures of the infrastructure, and replies that could not be
            played.
    """

    name: str
    step: int
    problems: int
    episodes: int
    uncounted: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of a run with the baseline, over the problems that both runs played.

    Attributes:
        baseline: Name and size of the baseline.
        other: Name and size of the run that is compared with it.
        problems: Number of problems that both runs played.
        other_gold: Number of problems left out because the two runs have different gold answers for the same id.
        figures: The compared figures by name: ``pass@1``, ``maj@8``, ``tool_error_share``, …
        ks: The values of k in the curves.
        curves: pass@k of the baseline and of the other run at each k.
        crossing: The smallest k at which the curves have crossed: the run that was ahead at the first difference is now
            behind. ``None`` if the curves do not cross.
        solved: Number of problems that both runs solved at least once (``both``), that only one run solved
            (``baseline_only``, ``other_only``), or that no run solved (``neither``).
        changed: Problems whose share of right samples differs, the smallest p-value first.
    """

    baseline: RunCounts
    other: RunCounts
    problems: int
    other_gold: int
    figures: Mapping[str, ComparedFigure]
    ks: tuple[int, ...]
    curves: tuple[tuple[Interval, ...], tuple[Interval, ...]]
    crossing: int | None
    solved: Mapping[str, int]
    changed: tuple[Changed, ...]

    @property
    def title(self) -> str:
        """The names of the two runs."""
        return f"{self.other.name} against {self.baseline.name} (baseline)"

    def __str__(self) -> str:
        """The figures of both runs as a table, and further findings as sentences."""
        return "\n".join([text_table(self.title, [HEADINGS, *figure_cells(self)]), *sentences(self)])

    def _repr_html_(self) -> str:
        ending = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in sentences(self))
        return html_table(self.title, list(figure_cells(self)), headings=HEADINGS) + ending

    def plot(self) -> Plot:
        """Plot pass@k, and the problems whose results differ; a notebook shows the plot, ``save`` writes it.

        Raises:
            MissingExtraError: matplotlib is not installed.
        """
        from rstar2_env.evaluation.comparison.picture import plot_comparisons

        return plot_comparisons([self])

    def record(self) -> dict[str, Any]:
        """Return all fields as JSON values."""
        figures = {
            name: {
                "baseline": _ends(figure.baseline),
                "other": _ends(figure.other),
                "difference": _ends(figure.difference),
                "p": figure.p_value,
            }
            for name, figure in self.figures.items()
        }
        names = ("baseline", "other")
        curves = {name: [_ends(point) for point in curve] for name, curve in zip(names, self.curves, strict=True)}
        record: dict[str, Any] = jsonable(
            {
                "baseline": asdict(self.baseline),
                "other": asdict(self.other),
                "problems": self.problems,
                "other_gold": self.other_gold,
                "figures": figures,
                "curve": {"k": list(self.ks), **curves},
                "crossing": self.crossing,
                "solved": dict(self.solved),
                "changed": [{**asdict(one), "difference": one.difference} for one in self.changed],
            }
        )
        return record


def compare(
    runs: Sequence[Stored], *, ks: Sequence[int] | None = None, seed: int = 0, resamples: int = RESAMPLES
) -> list[Comparison]:
    """Compare each run with the first run, the baseline.

    Args:
        runs: Two or more runs.
        ks: The values of k for pass@k and, above 2, for maj@k; ``None`` means the powers of two up to the number of
            samples, and that number itself.
        seed: Seed of the bootstrap and of the permutation test.
        resamples: Number of bootstrap samples, and maximum number of permutations.

    Raises:
        ConfigurationError: There are fewer than two runs, a run has no problem in common with the baseline, or a k is
            larger than the number of samples.
    """
    if len(runs) < 2:
        raise ConfigurationError("A comparison needs two or more runs; the first is the baseline.")
    baseline = _Played.of(runs[0])
    return [_compare(baseline, _Played.of(run), ks, seed, resamples) for run in runs[1:]]


@dataclass(slots=True)
class _Played:
    """Counts of a run's episodes, with the stored gold answer of each problem."""

    stored: Stored
    tally: EpisodeTally = field(default_factory=EpisodeTally)
    golds: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, stored: Stored) -> _Played:
        played = cls(stored)
        played.tally = EpisodeTally.from_entries(played._watched())
        return played

    def _watched(self) -> Iterator[EpisodeEntry]:
        for entry in self.stored:
            if entry.episode.problem_id and entry.more.get("gold") is not None:
                self.golds[entry.episode.problem_id] = str(entry.more["gold"])
            yield entry

    @property
    def counts(self) -> RunCounts:
        tally = self.tally
        return RunCounts(
            self.stored.name, self.stored.step, len(tally.problems), tally.episodes, tally.count - tally.episodes
        )


def _compare(a: _Played, b: _Played, ks: Sequence[int] | None, seed: int, resamples: int) -> Comparison:
    common = [name for name in a.tally.problems if name in b.tally.problems]
    other_gold = [
        name for name in common if name in a.golds and name in b.golds and a.golds[str(name)] != b.golds[str(name)]
    ]
    names = [name for name in common if name not in set(other_gold)]
    if not names:
        raise ConfigurationError(_nothing_common(a, b, len(other_gold)))
    pair = [a.tally.problems[name] for name in names], [b.tally.problems[name] for name in names]
    samples = np.minimum(*(np.array([one.episodes for one in side]) for side in pair))
    most = _most(samples)
    chosen = _check_ks(ks, most) if ks is not None else _powers(most)
    points = _points(most)
    curves = tuple(tuple(_intervals([at_k("pass", side, k) for k in points], seed, resamples)) for side in pair)
    values = [value_a.value - value_b.value for value_a, value_b in zip(*curves, strict=True)]
    return Comparison(
        baseline=a.counts,
        other=b.counts,
        problems=len(names),
        other_gold=len(other_gold),
        figures=_figures(pair, chosen, seed, resamples),
        ks=tuple(points),
        curves=(curves[0], curves[1]),
        crossing=_crossing(points, values),
        solved=_solved(*pair),
        changed=_changed(names, *pair),
    )


_Side = Sequence[ProblemTally]


def _figures(pair: tuple[_Side, _Side], ks: Sequence[int], seed: int, resamples: int) -> dict[str, ComparedFigure]:
    columns: dict[str, tuple[FloatArray, FloatArray]] = {}
    for k in ks:
        columns[f"pass@{k}"] = at_k("pass", pair[0], k), at_k("pass", pair[1], k)
    for k in (k for k in ks if k > 2):  # with two votes, neither can outvote the other
        columns[f"maj@{k}"] = at_k("maj", pair[0], k), at_k("maj", pair[1], k)
    of_pair = [figure_columns(side) for side in pair]
    for name in of_pair[0]:
        if name != "pass_rate" and name in of_pair[1]:  # pass@1 estimates the same share
            columns[name] = _linear(*of_pair[0][name]), _linear(*of_pair[1][name])
    # Drop figures without data in either run.
    columns = {name: sides for name, sides in columns.items() if np.isfinite(sides[0] + sides[1]).any()}
    both = {name: np.isfinite(a + b) for name, (a, b) in columns.items()}
    masked = {name: [np.where(both[name], side, math.nan) for side in sides] for name, sides in columns.items()}
    of_a = _intervals([sides[0] for sides in masked.values()], seed, resamples)
    of_b = _intervals([sides[1] for sides in masked.values()], seed, resamples)
    found = {}
    for name, a, b in zip(masked, of_a, of_b, strict=True):
        difference, p_value = paired(*masked[name], seed=seed, resamples=resamples)
        found[name] = ComparedFigure(a, b, difference, p_value)
    return found


def _linear(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return each problem's linearised contribution to a ratio of sums; the mean of the contributions is the ratio.

    ``x`` holds the numerator and ``y`` the denominator of each problem. Let r be the sum of x over all problems divided
    by the sum of y, and Y the mean of y. A problem contributes ``r + (x - r * y) / Y`` (W. G. Cochran, Sampling
    Techniques, 3rd edition, section 6.3). With these contributions, two ratios are compared in the same way as two
    means.
    """
    if not y.sum():
        return np.full(len(y), math.nan)
    ratio = x.sum() / y.sum()
    linear: FloatArray = ratio + (x - ratio * y) / y.mean()
    return linear


def _intervals(columns: Sequence[FloatArray], seed: int, resamples: int) -> list[Interval]:
    values = np.stack(columns, axis=1)
    known = np.isfinite(values)
    return bootstrap_shares(np.where(known, values, 0.0), known.astype(np.float64), seed=seed, resamples=resamples)


def _most(samples: Any) -> int:
    """Return the largest k for which at least the share ``_ENOUGH`` of the problems has k or more samples.

    ``samples`` holds the number of samples of each problem.
    """
    ordered = np.sort(samples)[::-1]
    return int(ordered[min(len(ordered) - 1, math.ceil(_ENOUGH * len(ordered)) - 1)])


def _powers(most: int) -> list[int]:
    return sorted({*(1 << power for power in range(most.bit_length())), most})


def _points(most: int) -> list[int]:
    if most <= _POINTS:
        return list(range(1, most + 1))
    spread = np.unique(np.geomspace(1, most, _POINTS).round().astype(int))
    return sorted({*map(int, spread), *_powers(most)})


def _check_ks(ks: Sequence[int], most: int) -> list[int]:
    for k in ks:
        if not 1 <= k <= most:
            raise ConfigurationError(
                f"k must be between 1 and {most}, the largest number of samples that every run has of "
                f"each problem; got {k}.",
                option="k",
            )
    return sorted(set(ks))


def _crossing(ks: Sequence[int], differences: Sequence[float]) -> int | None:
    first = next((value for value in differences if value), 0.0)
    return next((k for k, value in zip(ks, differences, strict=True) if value * first < 0), None)


def _solved(a: _Side, b: _Side) -> dict[str, int]:
    found = Counter(_SOLVED[one.correct > 0, another.correct > 0] for one, another in zip(a, b, strict=True))
    return {name: found[name] for name in _SOLVED.values()}


_SOLVED = {(True, True): "both", (True, False): "baseline_only", (False, True): "other_only", (False, False): "neither"}


def _changed(names: Sequence[Hashable], a: _Side, b: _Side) -> tuple[Changed, ...]:
    of_a, of_b = ([(one.correct, one.episodes) for one in side] for side in (a, b))
    p_values = [fisher_exact(*one, *another) for one, another in zip(of_a, of_b, strict=True)]
    cells = zip(map(str, names), of_a, of_b, p_values, false_shares(p_values), strict=True)
    told = [one for one in (Changed(*cell) for cell in cells) if one.difference]
    return tuple(sorted(told, key=lambda one: (one.p_value, -abs(one.difference), one.problem)))


def _nothing_common(a: _Played, b: _Played, other_gold: int) -> str:
    names = [next(iter(map(str, played.tally.problems)), "none") for played in (a, b)]
    because = f" ({other_gold} have different gold answers under the same id)" if other_gold else ""
    return (
        f"The runs {a.stored.name} and {b.stored.name} have no problem in common{because}: their first "
        f"problems are {names[0]} and {names[1]}. Compare runs of the same problems."
    )


def _ends(interval: Interval) -> dict[str, float]:
    return {"value": interval.value, "low": interval.low, "high": interval.high}


def figure_cells(comparison: Comparison) -> Iterator[tuple[str, ...]]:
    """Return a table row for each figure; ``HEADINGS`` names the columns."""
    for name, figure in comparison.figures.items():
        yield (
            name,
            number(figure.baseline.value),
            number(figure.other.value),
            number(figure.difference.value, signed=True),
            interval_text(figure.difference),
            p_text(figure),
        )


def changed_cells(comparison: Comparison, most: int) -> Iterator[tuple[str, ...]]:
    """Return a row for each of the first ``most`` problems in ``Comparison.changed``; see ``CHANGED_HEADINGS``."""
    for one in comparison.changed[:most]:
        shares = (f"{right}/{samples}" for right, samples in (one.baseline, one.other))
        yield (one.problem, *shares, f"{one.p_value:.2g}", f"{one.q_value:.2g}")


def sentences(comparison: Comparison) -> list[str]:
    """Return the facts about a comparison that the tables of figures and of problems omit, one sentence each."""
    a, b = comparison.baseline, comparison.other
    found = [f"{comparison.problems} problems in common, of {a.problems} and {b.problems}."]
    if comparison.other_gold:
        found.append(
            f"{comparison.other_gold} further problems have different gold answers under the same id, and are left out."
        )
    for run in (a, b):
        if run.uncounted:
            found.append(
                f"{run.name}: {run.uncounted} of {run.episodes + run.uncounted} episodes are left out, "
                "because they were cancelled, the infrastructure failed, or a reply could not be played."
            )
    solved = comparison.solved
    found.append(
        f"Number of problems that were solved at least once: {solved['both']} by both runs, "
        f"{solved['baseline_only']} only by the baseline, {solved['other_only']} only by the other run, and "
        f"{solved['neither']} by neither."
    )
    if len(comparison.ks) > 1:
        found.append(
            (
                f"The curves of pass@k cross at k = {comparison.crossing}: there, the run that is ahead for "
                "small k falls behind."
            )
            if comparison.crossing
            else f"The curves of pass@k do not cross up to k = {comparison.ks[-1]}."
        )
    return found


def number(value: float, *, signed: bool = False) -> str:
    """Format a figure with three decimal places, and with a plus sign if ``signed``; NaN and infinity become a dash."""
    if not math.isfinite(value):
        return NOTHING
    return f"{value:+.3f}" if signed else f"{value:.3f}"


def interval_text(interval: Interval) -> str:
    """Format the low and high end of a difference's interval; a dash if the interval is missing or both ends are 0."""
    if not math.isfinite(interval.low) or interval.low == interval.high == 0:
        return NOTHING  # resamples of differences that are all 0 say nothing about the uncertainty
    return f"{interval.low:+.3f}, {interval.high:+.3f}"


def p_text(figure: ComparedFigure) -> str:
    """Format the p-value of a figure; a dash if the figure has no interval."""
    return NOTHING if not math.isfinite(figure.difference.low) else f"{figure.p_value:.2g}"
