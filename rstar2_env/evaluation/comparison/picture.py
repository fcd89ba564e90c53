"""A comparison as a picture: curves of pass@k with intervals, and the difference of the two runs in each problem."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from rstar2_env.core.files.outputs import check_file
from rstar2_env.evaluation.figures.plot import Plot
from rstar2_env.evaluation.figures.statistics import Interval

_COLOURS = ("#57606a", "#1f6feb", "#d9730d", "#2da44e", "#8250df", "#cf222e")


class DrawnRun(Protocol):
    """A compared run; the picture shows its name."""

    @property
    def name(self) -> str:
        """The name of the run."""


class DrawnProblem(Protocol):
    """A problem whose share of right samples differs between two compared runs."""

    @property
    def difference(self) -> float:
        """The other run's share of right samples minus the baseline's."""


class Drawn(Protocol):
    """The attributes of a ``Comparison`` that are drawn."""

    @property
    def baseline(self) -> DrawnRun:
        """The run with which ``other`` is compared."""

    @property
    def other(self) -> DrawnRun:
        """The run that is compared with the baseline."""

    @property
    def problems(self) -> int:
        """Number of problems that both runs played."""

    @property
    def ks(self) -> tuple[int, ...]:
        """The values of k in the curves."""

    @property
    def curves(self) -> tuple[tuple[Interval, ...], tuple[Interval, ...]]:
        """pass@k of the baseline and of the other run at each k."""

    @property
    def crossing(self) -> int | None:
        """The smallest k at which the pass@k curves of the two runs have crossed; ``None`` if they do not cross."""

    @property
    def changed(self) -> Sequence[DrawnProblem]:
        """Problems whose share of right samples differs between the two runs."""


def draw(comparisons: Sequence[Drawn], path: Path, *, overwrite: bool = False) -> Path:
    """Draw comparisons with the same baseline and write the picture to a file.

    Args:
        comparisons: One or more comparisons with the same baseline.
        path: The PNG file to write; its folder is created if needed.
        overwrite: Replace an existing file.

    Raises:
        ConfigurationError: The file exists already, cannot be written, or has the suffix of another format.
        MissingExtraError: matplotlib is not installed.
    """
    check_file(path, option="report", overwrite=overwrite)
    return plot_comparisons(comparisons).save(path, overwrite=overwrite)


def plot_comparisons(comparisons: Sequence[Drawn]) -> Plot:
    """Plot comparisons with the same baseline.

    Args:
        comparisons: One or more comparisons with the same baseline.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    plot = Plot()
    curves, problems = plot.axes(2)
    first = comparisons[0]
    _curve(curves, first.ks, first.curves[0], f"{first.baseline.name} (baseline)", _COLOURS[0])
    for at, comparison in enumerate(comparisons):
        colour = _COLOURS[1 + at % (len(_COLOURS) - 1)]
        _curve(curves, comparison.ks, comparison.curves[1], comparison.other.name, colour)
        if comparison.crossing is not None:
            curves.axvline(comparison.crossing, color=colour, linewidth=1, linestyle=":")
        _differences(problems, comparison, colour)
    curves.set_xscale("log", base=2)
    ticks = [1 << power for power in range(max(one.ks[-1] for one in comparisons).bit_length())]
    curves.set_xticks(ticks, labels=list(map(str, ticks)))
    curves.set_title("pass@k, with intervals over problems", fontsize=10, loc="left")
    curves.set_xlabel("k (samples of a problem)")
    curves.set_ylim(0, 1.02)
    curves.legend(frameon=False, fontsize=8, loc="lower right")
    problems.axhline(0, color="#57606a", linewidth=0.8)
    problems.set_ylim(-1.05, 1.05)
    problems.set_title("share of right samples, minus the baseline's", fontsize=10, loc="left")
    problems.set_xlabel("problems, by difference")
    plot.figure.tight_layout()
    return plot


def _curve(axis: Any, ks: Sequence[int], points: Sequence[Interval], name: str, colour: str) -> None:
    values = [point.value for point in points]
    axis.plot(ks, values, "o-" if len(ks) <= 16 else "-", color=colour, label=name, markersize=3.5, linewidth=1.8)
    if all(math.isfinite(point.low) for point in points):
        lows, highs = [point.low for point in points], [point.high for point in points]
        if len(ks) > 1:
            axis.fill_between(ks, lows, highs, color=colour, alpha=0.15, linewidth=0)
        else:
            axis.vlines(ks, lows, highs, color=colour, linewidth=1.5)


def _differences(axis: Any, comparison: Drawn, colour: str) -> None:
    found = sorted((one.difference for one in comparison.changed), reverse=True)
    better = [value for value in found if value > 0]
    worse = [value for value in found if value < 0]
    same = comparison.problems - len(found)
    heights = [*better, *[0.0] * same, *worse]
    axis.step(range(len(heights) + 1), [*heights, heights[-1]], where="post", color=colour, linewidth=1.2)
    axis.fill_between(
        range(len(heights) + 1), [*heights, heights[-1]], step="post", color=colour, alpha=0.2, linewidth=0
    )
