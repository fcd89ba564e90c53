"""Claims about ``load_problems``: every kind of spec, every kind of mistake."""

from __future__ import annotations

import dataclasses
import pickle
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import rstar2_env  # noqa: F401  # registers the families of the worlds
from rstar2_env.core.errors import ConfigurationError, ProblemFormatError, UnknownNameError
from rstar2_env.problems import FAMILIES, FiniteSource, Problem, ProblemSource, choose, load_problems

TEN = [{"question": f"question {n}", "answer": n} for n in range(10)]


def finite(source: ProblemSource) -> FiniteSource:
    assert isinstance(source, FiniteSource)
    return source


def test_records_and_problems_may_stand_in_one_list():
    own = Problem("mine", "q", "a")
    source = finite(load_problems([own, {"question": "r", "answer": 4}]))
    assert source.get("mine") is own
    assert source[1] == Problem("problem-1", "r", "4")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"),
        (0.1, "0.1"),
        (1e-7, "0.0000001"),
        (Decimal("2.50"), "2.50"),
        (Fraction(1, 3), "1/3"),
        (np.int64(5), "5"),
        (np.float64(0.5), "0.5"),
    ],
)
def test_numbers_in_memory_become_exact_text(value, text):
    assert load_problems([{"question": "q", "answer": value}])[0].answer == text


@pytest.mark.parametrize("value", [float("nan"), float("inf"), Decimal("NaN"), True, None, b"5", ""])
def test_an_answer_that_is_no_answer_is_named(value):
    with pytest.raises(ProblemFormatError, match=r"problems\[1\].*'answer'"):
        load_problems([*TEN[:1], {"question": "q", "answer": value}])


def test_a_data_frame_has_a_problem_in_each_row():
    pandas = pytest.importorskip("pandas")
    rows = [{"question": "1 + 1", "answer": 2, "level": 3.0}, {"question": "2 + 2", "answer": 4, "level": None}]
    source = load_problems(pandas.DataFrame(rows))
    assert [(problem.question, problem.answer, problem.meta) for problem in source] == [
        ("1 + 1", "2", {"level": 3.0}),
        ("2 + 2", "4", {}),
    ]
    renamed = pandas.DataFrame(rows).rename(columns={"answer": "solution"})
    assert load_problems(renamed, columns={"answer": "solution"})[1].answer == "4"
    missing = pandas.DataFrame([{"question": "1 + 1", "answer": "2"}, {"question": "2 + 2", "answer": None}])
    with pytest.raises(ProblemFormatError, match="answer"):
        load_problems(missing)[1]


def test_a_source_is_returned_as_it_is():
    source = load_problems(TEN)
    assert load_problems(source) is source


def test_two_problems_with_one_id_are_an_error():
    with pytest.raises(ProblemFormatError, match=r"0 and 1.*'x'"):
        load_problems([Problem("x", "a", "1"), Problem("x", "b", "2")])


@pytest.mark.parametrize("spec", [{"question": "q", "answer": 1}, 5, None])
def test_a_spec_of_the_wrong_type_says_what_is_expected(spec):
    with pytest.raises(ConfigurationError, match="list of dicts"):
        load_problems(spec)


def test_an_empty_list_is_an_error():
    with pytest.raises(ProblemFormatError, match="not contain any problems"):
        load_problems([])


def test_an_unknown_family_suggests_the_nearest():
    with pytest.raises(UnknownNameError, match="Did you mean 'arithmetic'"):
        load_problems("arithmatic")


def test_options_in_the_name_are_the_options_by_name():
    assert (
        load_problems("arithmetic:level=3,split=test,seed=5")[4]
        == load_problems("arithmetic", level=3, split="test", seed=5)[4]
    )


@pytest.mark.parametrize(
    ("spec", "options", "said"),
    [
        ("arithmetic:levl=3", {}, "levl"),
        ("arithmetic:level", {}, "name=value"),
        ("arithmetic:level=9", {}, "level must be an integer from 1 to 5"),
        ("arithmetic:level=[1]", {}, "level must be an integer from 1 to 5"),
        ("arithmetic", {"max_number": 1}, "at least 2"),
        ("arithmetic", {"split": "tset"}, "train"),
        ("arithmetic", {"seed": -1}, "at least 0"),
        ("arithmetic", {"holdout": 0.1}, "its own splits"),
        (TEN, {"level": 3}, "level"),
        (TEN, {"holdout": 1.5}, "share of the problems"),
        (TEN, {"holdout": 0.5, "split": "validation"}, "validation"),
        (TEN[:1], {"holdout": 0.000001, "split": "test"}, "empty: use more problems"),
    ],
)
def test_an_option_that_does_not_fit_is_named(spec, options, said):
    with pytest.raises(ConfigurationError, match=said):
        load_problems(spec, **options)


def test_a_name_with_a_suffix_is_taken_for_a_file():
    with pytest.raises(ConfigurationError, match=r"arithmatic\.jsonl cannot be read"):
        load_problems("arithmatic.jsonl")


def test_a_holdout_divides_a_list_by_its_questions_and_never_shares_one():
    many = [{"question": f"question {n % 500}", "answer": n} for n in range(1000)]
    train, test = (finite(load_problems(many, holdout=0.2, split=split)) for split in ("train", "test"))
    assert len(train) + len(test) == 1000
    assert 120 < len(test) < 280
    assert not {p.question for p in train} & {p.question for p in test}
    assert not set(train.ids) & set(test.ids)


def test_an_unknown_id_suggests_the_nearest_and_stays_short():
    source = load_problems([{"question": "q", "answer": n, "id": f"gsm8k-{n:05}"} for n in range(5000)])
    with pytest.raises(UnknownNameError) as caught:
        source.get("gsm8k-01234x")
    assert "gsm8k-01234" in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("index", [-1, 10])
def test_an_index_outside_is_an_index_error(index):
    with pytest.raises(IndexError, match="0 to 9"):
        load_problems(TEN)[index]


def test_sampling_uses_the_callers_generator_alone():
    source = load_problems(TEN)
    before = np.random.get_state()[1].tolist()
    first = [source.sample(np.random.default_rng(3)).id for _ in range(2)]
    assert first[0] == first[1]
    assert np.random.get_state()[1].tolist() == before


def test_sampling_reaches_every_problem():
    rng = np.random.default_rng(0)
    source = load_problems(TEN)
    assert {source.sample(rng).id for _ in range(500)} == set(finite(source).ids)


def test_choosing_goes_through_a_list_before_it_repeats():
    chosen = [problem.id for problem in choose(load_problems(TEN), 25, seed=1)]
    assert len(set(chosen[:10])) == len(set(chosen[10:20])) == 10
    assert chosen == [problem.id for problem in choose(load_problems(TEN), 25, seed=1)]
    assert chosen != [problem.id for problem in choose(load_problems(TEN), 25, seed=2)]


def test_choosing_from_a_family_repeats_no_question():
    chosen = choose(load_problems("arithmetic:level=1"), 1000, seed=0)
    assert len({problem.question for problem in chosen}) == 1000


def test_choosing_none_is_an_error():
    with pytest.raises(ConfigurationError, match="at least 1"):
        choose(load_problems(TEN), 0)


@pytest.mark.parametrize("spec", [TEN, "arithmetic:level=4"])
def test_a_source_survives_pickling(spec):
    source = load_problems(spec)
    copy = pickle.loads(pickle.dumps(source))
    assert [copy[n] for n in range(10)] == [source[n] for n in range(10)]
    assert copy.get(source[3].id) == source[3]


def test_another_family_joins_with_one_register():
    def ones(*, split: str, seed: int) -> ProblemSource:
        return load_problems([Problem("one", f"{split} {seed}", "1")])

    FAMILIES.register("ones-of-this-test", ones)
    assert load_problems("ones-of-this-test", split="test", seed=4)[0].question == "test 4"


def test_a_path_object_is_always_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_problems(Path("arithmetic"))


def test_another_split_of_a_family_that_draws_for_its_split_is_drawn_for_that_one():
    train = load_problems("game24")
    test = dataclasses.replace(train, split="test")
    assert [test[n] for n in range(5)] == [load_problems("game24", split="test")[n] for n in range(5)]
