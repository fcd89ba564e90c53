"""Samplers: functions of a seed and a step, so that a resumed run goes on as if it had never stopped."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.trainers.samplers.fixed import ProblemSampler, Sampler, SeedSampler, Start

IDS = [f"p{i}" for i in range(7)]
seeds, steps, counts = st.integers(0, 2**40), st.integers(0, 10**6), st.integers(1, 20)


def make(kind: str, seed: int) -> Sampler:
    return SeedSampler(seed) if kind == "seeds" else ProblemSampler(IDS, seed)


kinds = pytest.mark.parametrize("kind", ["seeds", "problems"])


@kinds
@given(seed=seeds, step=steps, count=counts)
def test_the_same_seed_and_step_give_the_same_starts(kind: str, seed: int, step: int, count: int) -> None:
    starts = make(kind, seed).starts(step, count)
    assert len(starts) == count
    assert starts == make(kind, seed).starts(step, count)


@kinds
def test_a_resumed_run_draws_what_an_unbroken_one_does(kind: str) -> None:
    whole = make(kind, 5)
    unbroken = [whole.starts(step, 4) for step in range(20)]
    for resumed_at in (1, 7, 19):
        resumed = make(kind, 5)
        assert [resumed.starts(step, 4) for step in range(resumed_at, 20)] == unbroken[resumed_at:]
    # Evaluation, or a look back, does not disturb what comes.
    whole.starts(3, 9)
    assert whole.starts(20, 4) == make(kind, 5).starts(20, 4)


@kinds
def test_steps_and_roots_differ(kind: str) -> None:
    drawn = [start.seed for root in range(5) for step in range(50) for start in make(kind, root).starts(step, 8)]
    assert len(set(drawn)) == len(drawn) == 2000


@given(seed=seeds, step=steps)
def test_seeds_are_what_a_gymnasium_reset_takes(seed: int, step: int) -> None:
    for start in SeedSampler(seed).starts(step, 8):
        assert type(start.seed) is int
        assert 0 <= start.seed < 2**63
        assert start.options == {}


@given(seed=seeds, count=counts, size=st.integers(1, 15))
def test_no_problem_comes_twice_before_every_problem_came_once(seed: int, count: int, size: int) -> None:
    ids = IDS * 2 if size > 7 else IDS[:size]
    ids = [f"{i}-{name}" for i, name in enumerate(ids)]
    sampler = ProblemSampler(ids, seed)
    drawn = [start.options["problem_id"] for step in range(30) for start in sampler.starts(step, count)]
    for begin in range(0, len(drawn) - len(ids) + 1, len(ids)):
        assert sorted(drawn[begin : begin + len(ids)]) == sorted(ids)


def test_every_pass_has_an_order_of_its_own_and_no_place_is_preferred() -> None:
    sampler = ProblemSampler(IDS, 0)
    passes = [tuple(s.options["problem_id"] for s in sampler.starts(step, len(IDS))) for step in range(700)]
    assert len(set(passes)) > 500
    first = Counter(order[0] for order in passes)
    # Each of seven expected 100 times; six standard deviations of a binomial are 56.
    assert all(44 < first[name] < 156 for name in IDS)


def test_a_problem_sampler_needs_problems_and_seeds_are_not_negative() -> None:
    with pytest.raises(ConfigurationError, match="problem"):
        ProblemSampler([])
    with pytest.raises(ConfigurationError, match="seed"):
        SeedSampler(-1)
    with pytest.raises(ConfigurationError, match="seed"):
        ProblemSampler(IDS, -1)


def test_a_start_without_options_leaves_the_choice_to_the_environment() -> None:
    assert Start(3).options == {}
