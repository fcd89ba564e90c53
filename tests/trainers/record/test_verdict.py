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
