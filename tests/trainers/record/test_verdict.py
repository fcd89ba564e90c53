"""A run that got worse says so, and one that was not evaluated claims no best step."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from rstar2_env.trainers.base import TrainResult
from rstar2_env.trainers.record.verdict import outcome


def figures(rate: float, error: float = 0.001) -> dict[str, float]:
    return {"pass_rate": rate, "pass_rate_se": error}


@pytest.mark.parametrize(
    ("before", "after", "best_step", "says"),
    [
        (
            0.2,
            0.5,
            8,
            "Better: the held-out pass rate went from 0.2000 to 0.5000; the best weights are those of",
        ),
        (
            0.5,
            0.2,
            4,
            "Worse: the held-out pass rate went from 0.5000 to 0.2000; the best weights are those of",
        ),
        (0.5, 0.2, 0, "so the best weights are the initial ones."),
        (0.5, 0.5, 0, "No change: "),
        (math.nan, 0.5, 4, "No held-out episode counted"),
    ],
)
def test_an_evaluated_run_says_how_it_went(before: float, after: float, best_step: int, says: str) -> None:
    assert says in outcome(figures(before), figures(after), best_step)


def test_a_change_that_may_be_chance_is_called_so() -> None:
    assert "two standard errors" in outcome(figures(0.5, 0.05), figures(0.4, 0.05), 0)
    assert "two standard errors" not in outcome(figures(0.5, 0.03), figures(0.4, 0.03), 0)


def test_a_run_without_evaluation_has_no_best_step() -> None:
    result = TrainResult(Path("run"), Path("run/final"), None, None, None, [])
    assert "no step is known to be the best" in result.outcome


HISTORY = [
    {"step": 1, "rollout/pass_rate": 0.25, "rollout/turns": 2.0, "loss": 0.5},
    {"step": 1, "eval/pass_rate": 0.3},
    {"step": 2, "rollout/pass_rate": 0.5, "rollout/turns": 1.5, "loss": 0.4},
]


def test_a_result_prints_as_a_short_table_without_its_history():
    result = TrainResult(Path("run"), Path("run/best"), {"pass_rate": 0.3}, {"pass_rate": 0.6}, 2, HISTORY * 50)
    lines = str(result).splitlines()
    assert lines[0] == "run: 100 steps"
    row = next(line for line in lines if line.strip().startswith("pass rate"))
    assert row.split()[2:] == ["30.0", "%", "60.0", "%", "25.0", "%", "50.0", "%"]
    assert result.outcome in lines
    assert len(lines) < 12
    assert repr(result) == "TrainResult(output_dir='run', model_dir='run/best', steps=100, best_step=2)"
    assert "60.0 %" in result._repr_html_()
    assert "run/best" in result._repr_html_()


def test_a_result_without_steps_prints_too():
    assert "0 steps" in str(TrainResult(Path("run"), Path("run/final"), None, None, None, []))


def test_a_result_plots_its_steps():
    pytest.importorskip("matplotlib")
    plot = TrainResult(Path("run"), Path("run/best"), None, None, None, HISTORY).plot()
    trained, held_out = plot.figure.axes[0].lines
    assert list(trained.get_xdata()) == [1, 2]
    assert list(held_out.get_ydata()) == [0.3]
    assert plot._repr_png_().startswith(b"\x89PNG")
