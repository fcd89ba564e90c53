"""Claims about mixtures and splits of training problems."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.problems import Problem
from rstar2_env.problems.prepare.mixing import mix, shares_of
from rstar2_env.problems.prepare.splits import split_questions


def made(name: str, count: int) -> list[Problem]:
    return [Problem(f"{name}/{number}", f"{name} number {number}?", "1") for number in range(count)]


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=6), st.integers(0, 500))
def test_the_shares_of_a_mixture_add_up_and_none_is_off_by_one_problem(weights: list[float], total: int) -> None:
    named = {str(number): weight for number, weight in enumerate(weights)}
    counts = shares_of(named, dict.fromkeys(named, 10_000), total)
    assert sum(counts.values()) == total
    assert all(abs(counts[name] - total * weight / sum(weights)) <= 1 for name, weight in named.items())


def test_without_a_total_a_mixture_is_the_largest_that_keeps_the_weights() -> None:
    assert shares_of({"a": 3, "b": 1}, {"a": 30, "b": 100}, None) == {"a": 30, "b": 10}


def test_what_does_not_divide_evenly_goes_to_the_largest_remainders() -> None:
    assert shares_of({"a": 5, "b": 3, "c": 2}, dict.fromkeys("abc", 9), 4) == {"a": 2, "b": 1, "c": 1}


def test_a_weight_of_0_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="must be above 0"):
        shares_of({"a": 1, "b": 0}, {"a": 9, "b": 9}, 4)


def test_a_source_that_is_too_small_is_named_with_what_it_has() -> None:
    with pytest.raises(ConfigurationError, match="75 from a, which has only 30"):
        shares_of({"a": 3, "b": 1}, {"a": 30, "b": 100}, 100)


def test_a_mixture_has_every_problem_once_and_depends_on_its_seed_alone() -> None:
    parts, weights = {"a": made("a", 50), "b": made("b", 50)}, {"a": 1.0, "b": 3.0}
    mixed = mix(parts, weights, total=40, seed=1)
    assert len({problem.id for problem in mixed}) == 40
    assert sum(problem.id.startswith("b/") for problem in mixed) == 30
    assert mixed == mix({"b": parts["b"], "a": parts["a"]}, {"b": 3.0, "a": 1.0}, total=40, seed=1)
    assert mixed != mix(parts, weights, total=40, seed=2)


def test_the_sources_of_a_mixture_are_chosen_from_apart_and_shuffled() -> None:
    mixed = mix({"a": made("a", 50), "b": made("b", 50)}, {"a": 1.0, "b": 1.0}, total=20)
    names = [problem.id[0] for problem in mixed]
    assert names != sorted(names)
    numbers = {name: {problem.id[2:] for problem in mixed if problem.id[0] == name} for name in "ab"}
    assert numbers["a"] != numbers["b"]
    other = mix({"a": made("a", 50), "c": made("c", 50)}, {"a": 1.0, "c": 1.0}, total=20)
    assert numbers["a"] == {problem.id[2:] for problem in other if problem.id[0] == "a"}


def test_splits_have_no_question_in_common_whatever_its_mark_up() -> None:
    problems = made("x", 400)
    copies = [Problem(f"copy of {one.id}", one.question.upper().replace("?", " ?!"), "1") for one in problems]
    found = split_questions([*problems, *copies], {"train": 0.7, "validation": 0.2, "test": 0.1})
    of = {one.id.removeprefix("copy of "): set() for one in problems}
    for name, split in found.items():
        for one in split:
            of[one.id.removeprefix("copy of ")].add(name)
    assert all(len(names) == 1 for names in of.values())
    assert [abs(len(found[name]) / 800 - share) < 0.05 for name, share in (("train", 0.7), ("test", 0.1))] == [True] * 2


def test_what_else_there_is_moves_no_problem_to_another_split() -> None:
    shares, problems = {"train": 0.5, "test": 0.5}, made("x", 100)
    alone = split_questions(problems[:50], shares)["test"]
    assert alone == [one for one in split_questions(problems, shares)["test"] if one in problems[:50]]


@pytest.mark.parametrize("shares", [{}, {"train": 0.5}, {"train": 1.5, "test": -0.5}, {"train": 1.0, "test": 0.0}])
def test_shares_that_are_no_division_are_refused(shares: dict[str, float]) -> None:
    with pytest.raises(ConfigurationError, match="add up to 1"):
        split_questions([], shares)
