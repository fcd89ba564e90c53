"""``uniform``: a cursor over shuffled passes or fresh seeds, which goes on anywhere as if it had never stopped."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.parts import make_part
from rstar2_env.trainers.samplers.base import SAMPLERS, Start
from rstar2_env.trainers.samplers.uniform import Uniform

IDS = [f"p{i}" for i in range(7)]
seeds, draws = st.integers(0, 2**40), st.lists(st.integers(0, 20), min_size=1, max_size=8)


def make(kind: str, seed: int = 0) -> Uniform:
    return Uniform(None if kind == "seeds" else IDS, seed)


kinds = pytest.mark.parametrize("kind", ["seeds", "problems"])


@kinds
@given(seed=seeds, sizes=draws)
def test_the_order_depends_on_the_seed_and_the_cursor_alone(kind: str, seed: int, sizes: list[int]) -> None:
    piecemeal = make(kind, seed)
    apart = [start for size in sizes for start in piecemeal.draw(size)]
    assert apart == make(kind, seed).draw(sum(sizes))
    assert len(apart) == sum(sizes)


@kinds
@given(seed=seeds, before=st.integers(0, 50), after=st.integers(1, 20))
def test_a_resumed_sampler_goes_on_where_the_other_stood(kind: str, seed: int, before: int, after: int) -> None:
    whole = make(kind, seed)
    whole.draw(before)
    state = json.loads(json.dumps(whole.state_dict()))
    resumed = make(kind, seed)
    resumed.load_state_dict(state)
    assert resumed.draw(after) == whole.draw(after)
    assert resumed.state_dict() == whole.state_dict() == {"cursor": before + after}


@kinds
def test_positions_and_roots_differ(kind: str) -> None:
    drawn = [start.seed for root in range(5) for start in make(kind, root).draw(400)]
    assert len(set(drawn)) == len(drawn) == 2000


@given(seed=seeds)
def test_seeds_are_what_a_gymnasium_reset_takes(seed: int) -> None:
    for start in Uniform(None, seed).draw(8):
        assert type(start.seed) is int
        assert 0 <= start.seed < 2**63
        assert start.options == {}
        assert start.problem_id == ""


@given(seed=seeds, sizes=draws, count=st.integers(1, 15))
def test_no_problem_comes_twice_before_every_problem_came_once(seed: int, sizes: list[int], count: int) -> None:
    ids = [f"{i}-problem" for i in range(count)]
    sampler = Uniform(ids, seed)
    drawn = [start.problem_id for size in sizes * 3 for start in sampler.draw(size)]
    for begin in range(0, len(drawn) - len(ids) + 1, len(ids)):
        assert sorted(drawn[begin : begin + len(ids)]) == sorted(ids)


def test_every_pass_has_an_order_of_its_own_and_no_place_is_preferred() -> None:
    sampler = Uniform(IDS)
    passes = [tuple(start.problem_id for start in sampler.draw(len(IDS))) for _ in range(700)]
    assert len(set(passes)) > 500
    first = Counter(order[0] for order in passes)
    # Each of seven expected 100 times; six standard deviations of a binomial are 56.
    assert all(44 < first[name] < 156 for name in IDS)


def test_outcomes_change_nothing() -> None:
    heard, deaf = Uniform(IDS), Uniform(IDS)
    heard.draw(3), deaf.draw(3)
    heard.observe([])
    assert heard.draw(9) == deaf.draw(9)


def test_it_comes_by_name_and_refuses_what_makes_no_sense() -> None:
    assert isinstance(make_part(SAMPLERS, "uniform", ids=IDS, seed=3), Uniform)
    with pytest.raises(ConfigurationError, match="no problem to draw"):
        Uniform([])
    with pytest.raises(ConfigurationError, match="seed"):
        Uniform(None, -1)
    with pytest.raises(ConfigurationError, match="seed"):
        Uniform(IDS, -1)


def test_a_start_without_options_leaves_the_choice_to_the_environment() -> None:
    assert Start(3).options == {}
    assert Start(3, {"problem_id": "a"}).problem_id == "a"
