"""The claim of RAST's table: with what GRPO changed in a smaller model, a larger one beats its own vote."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from rstar2_env.core.episode import Episode


@pytest.fixture(scope="module")
def bench(benchmark_named: Callable[[str], ModuleType]) -> ModuleType:
    return benchmark_named("logit_transfer")


@pytest.mark.slow
def test_it_beats_the_vote_of_the_larger_model_and_the_smaller_one_that_was_trained(
    bench: ModuleType, tmp_path: Path
) -> None:
    models = bench.train(tmp_path, wrong=0.5, seed=0)
    alone, before, after, shifted = bench.measure(models, strengths=(1.0,), played=1, seed=0)
    assert after.rate > before.rate + 0.2
    assert shifted.rate > after.rate
    assert shifted.rate > max(alone.rate, shifted.vote) + 0.2
    assert shifted.passes == 3 * shifted.tokens == pytest.approx(3 * alone.tokens, rel=0.1)


def test_no_held_out_sum_is_trained_on_and_a_wrong_solution_is_never_right(bench: ModuleType) -> None:
    known, held_out = bench.problems()
    assert not {one["question"] for one in known} & {one["question"] for one in held_out}
    for one in [*known, *held_out]:
        assert f"{{{one['answer']}}}" in bench.solution(one["question"], right=True)
        assert f"{{{one['answer']}}}" not in bench.solution(one["question"], right=False)


def test_plain_sampling_is_given_as_many_passes(bench: ModuleType) -> None:
    answers = {"p": ["1", "1", "2", "2", "1", "2"], "q": ["3", "1", "1", "1", "3", "1"]}
    plain = bench.Plain(
        [
            Episode(problem_id=name, answer=answer, correct=answer == "1", mask=[1] * 10)
            for name, given in answers.items()
            for answer in given
        ]
    )
    assert plain.at(4.0) == plain.at(10.0) == (7 / 12, 7 / 12)
    assert plain.at(30.0) == (3 / 4, 1)
    assert plain.at(25.0) == pytest.approx(((plain.at(20.0)[0] + 3 / 4) / 2, (plain.at(20.0)[1] + 1) / 2))
