"""What dropping the last groups of a step does to what trains, and what carrying them over does not."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest

from rstar2_env.trainers.step.step_group import MOST_STEPS


@pytest.fixture(scope="module")
def found(benchmark_named: Callable[[str], ModuleType]) -> dict[str, dict[str, float]]:
    module = benchmark_named("long_tail")
    arms = [("wait", 0.0), ("drop", 0.25), ("carry", 0.25)]
    return {tail: module.simulate(tail, spare, 150, 1) for tail, spare in arms}


def test_dropping_the_last_groups_trains_on_short_and_easy_ones(found: dict[str, dict[str, float]]) -> None:
    wait, drop = found["wait"], found["drop"]
    assert wait["hard problems"] == pytest.approx(0.25, abs=0.02)
    assert wait["pass rate seen"] == pytest.approx(0.5, abs=0.02)
    assert drop["tokens a step waits for"] < 0.7 * wait["tokens a step waits for"]
    assert drop["pass rate seen"] > 0.55
    assert drop["mean length"] < 0.9 * wait["mean length"]
    assert drop["hard problems"] < 0.18
    assert drop["groups never trained"] == pytest.approx(0.2)


def test_carrying_them_over_trains_on_all_of_them_with_tokens_of_older_weights(
    found: dict[str, dict[str, float]],
) -> None:
    wait, drop, carry = found["wait"], found["drop"], found["carry"]
    assert carry["tokens a step waits for"] < 0.7 * wait["tokens a step waits for"]
    for name in ("pass rate seen", "hard problems"):
        assert carry[name] == pytest.approx(wait[name], abs=0.02), name
    assert carry["mean length"] == pytest.approx(wait["mean length"], rel=0.03)
    assert carry["groups never trained"] == 0
    assert carry["tokens lost"] < drop["tokens lost"] / 10
    assert 0.2 < carry["tokens of older weights"] < 0.5, "the price"
    assert 1 <= carry["longest delay in steps"] <= MOST_STEPS
