"""The claims of the agents' table in miniature: searching beats plain sampling with as many tokens, a vote does not."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest


@pytest.fixture(scope="module")
def bench(benchmark_named: Callable[[str], ModuleType]) -> ModuleType:
    return benchmark_named("search_agents")


@pytest.fixture(scope="module")
def plain(bench: ModuleType) -> Any:
    return bench.Plain(episodes=30, seed=0, most=8)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("best_of_k", {"k": 8, "enough": 1.0}),
        ("rap_mcts", {}),
        ("reasoner", {"search": "beam"}),
        ("reasoner", {"search": "mcts", "grade": True}),
        ("mcts_puct", {}),
        ("retrieval_mcts", {"solved": True}),
    ],
)
def test_it_beats_the_vote_of_plain_sampling_with_as_many_tokens(
    bench: ModuleType, plain: Any, name: str, options: dict[str, Any]
) -> None:
    if "solved" in options:
        options = {"solved": bench.solved_before(30)}
    row = bench.measure(name, name, options, plain, seed=0)
    assert row.rate > row.vote + 0.15
    assert row.tokens > plain.tokens


def test_a_vote_over_expressions_gains_nothing(bench: ModuleType, plain: Any) -> None:
    row = bench.measure("vote", "self_consistency", {"k": 8, "early_stop": False}, plain, seed=0)
    assert row.samples == pytest.approx(8, abs=0.1)
    assert row.rate < row.any
    assert row.rate == pytest.approx(row.vote, abs=0.15)


def test_plain_sampling_is_counted_in_whole_solutions(bench: ModuleType, plain: Any) -> None:
    samples, vote, best = plain.at(plain.tokens)
    assert (samples, vote) == (1.0, best)
    assert plain.at(4 * plain.tokens)[2] > best
    assert plain.at(1.5 * plain.tokens)[2] == pytest.approx((best + plain.at(2 * plain.tokens)[2]) / 2)


def test_programs_are_run_in_the_tool(bench: ModuleType, plain: Any) -> None:
    row = bench.measure("router", "tactic_router", {}, plain, seed=0)
    assert row.rate > row.vote + 0.15


@pytest.mark.proof
def test_a_trained_navigator_beats_the_one_that_only_reasons(bench: ModuleType, plain: Any) -> None:
    weights = bench.navigator_weights(0, 800)
    trained = bench.measure("trained", "navigator", {**bench.NAVIGATED, "weights": weights}, plain, seed=0)
    untrained = bench.measure("untrained", "navigator", bench.NAVIGATED, plain, seed=0)
    assert trained.rate > untrained.rate + 0.1
    assert trained.rate > trained.vote + 0.1
