"""Plots the learning curves of one or more runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rstar2_env.evaluation.figures.plot import COLOURS, Plot

_PANELS = (
    ("pass_rate", "right answers", "share of episodes"),
    ("tool_error_share_correct", "tool errors in episodes with a right answer", "share of calls"),
)
_WINDOW = 7
"""Steps over which the training curve is averaged."""


def draw_runs(histories: Mapping[str, Sequence[Mapping[str, float]]], *, title: str = "") -> Plot:
    """Plot pass rate and tool errors over the steps: a thin line for training, dots for held-out problems.

    Args:
        histories: The metrics of each run by its name, one mapping per step, as in ``TrainResult.history``.
        title: Title of the figure.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    plot = Plot()
    axes = plot.axes(2)
    for axis, (figure_name, heading, unit) in zip(axes, _PANELS, strict=True):
        for (name, history), colour in zip(histories.items(), COLOURS * len(histories), strict=False):
            steps, values = _curve(history, f"rollout/{figure_name}")
            axis.plot(steps, _smooth(values), color=colour, linewidth=1.2, alpha=0.55)
            steps, values = _curve(history, f"eval/{figure_name}")
            axis.plot(steps, values, "o-", color=colour, linewidth=2, markersize=4.5, label=name)
        axis.set_title(heading, fontsize=10, loc="left")
        axis.set_xlabel("optimizer step")
        axis.set_ylabel(unit)
        axis.set_ylim(bottom=0)
    axes[0].set_ylim(0, 1.02)
    axes[0].legend(frameon=False, loc="lower right", title="dots: held-out problems", title_fontsize=8, fontsize=9)
    if title:
        plot.figure.suptitle(title, fontsize=11, x=0.01, ha="left")
    plot.figure.tight_layout()
    return plot


def _curve(history: Sequence[Mapping[str, float]], name: str) -> tuple[list[float], list[float]]:
    points = [(line["step"], line[name]) for line in history if name in line and not math.isnan(line[name])]
    return [step for step, _ in points], [value for _, value in points]


def _smooth(values: Sequence[float]) -> list[float]:
    half = _WINDOW // 2
    windows = (values[max(0, at - half) : at + half + 1] for at in range(len(values)))
    return [sum(window) / len(window) for window in windows]
