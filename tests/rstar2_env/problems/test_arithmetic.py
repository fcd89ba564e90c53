"""Claims about the family ``arithmetic`` and about procedural sources, over thousands of seeds."""

from __future__ import annotations

import ast
import random
import re
import sys

import numpy as np
import pytest

from rstar2_env.core.errors import ConfigurationError, UnknownNameError
from rstar2_env.problems import SPLITS, Problem, load_problems, split_of

LEVELS = (1, 2, 3, 4, 5)
OPERATIONS = {1: {1}, 2: {2}, 3: {2, 3}, 4: {3}, 5: {4}}


def some(count: int = 1000, **options: object) -> list[Problem]:
    source = load_problems("arithmetic", **options)
    return [source[index] for index in range(count)]


@pytest.mark.parametrize("level", LEVELS)
def test_the_answer_is_the_value_of_the_expression(level):
    for problem in some(2000, level=level):
        assert str(eval(problem.meta["expression"])) == problem.answer


@pytest.mark.parametrize("level", LEVELS)
def test_every_step_of_a_story_leaves_something_and_divisions_come_out_even(level):
    for problem in some(2000, level=level):
        for node in ast.walk(ast.parse(problem.meta["expression"], mode="eval")):
            if isinstance(node, ast.BinOp):
                value = eval(ast.unparse(node))
                assert value >= 1
                if isinstance(node.op, ast.FloorDiv):
                    assert eval(ast.unparse(node.left)) % eval(ast.unparse(node.right)) == 0


@pytest.mark.parametrize("level", LEVELS)
def test_the_question_states_the_operands_in_order_and_nothing_else(level):
    for problem in some(level=level):
        assert [int(number) for number in re.findall(r"\d+", problem.question)] == problem.meta["operands"]
        assert re.findall(r"\d+", problem.meta["expression"]) == [str(n) for n in problem.meta["operands"]]


@pytest.mark.parametrize("level", LEVELS)
def test_a_level_has_its_number_of_operations(level):
    found = {problem.meta["operations"] for problem in some(level=level)}
    assert found == OPERATIONS[level]
    for problem in some(level=level):
        assert len(problem.meta["operands"]) == problem.meta["operations"] + 1


@pytest.mark.parametrize(("level", "median", "longest"), [(1, 60, 70), (2, 70, 80), (5, 130, 160)])
def test_the_text_is_short_plain_ascii_of_few_characters(level, median, longest):
    questions = [problem.question for problem in some(3000, level=level)]
    assert all(question.isascii() and "\n" not in question for question in questions)
    lengths = sorted(map(len, questions))
    assert lengths[1500] <= median
    assert lengths[-1] <= longest
    assert len(set("".join(questions))) <= 45


@pytest.mark.parametrize("max_number", [5, 20, 1000])
def test_no_number_of_a_question_is_above_the_largest(max_number):
    for level in LEVELS:
        assert max(max(p.meta["operands"]) for p in some(500, level=level, max_number=max_number)) <= max_number


def test_the_same_seed_gives_the_same_problems_and_every_part_of_the_seed_matters():
    base = [p.question for p in some(200, level=3, seed=1)]
    assert base == [p.question for p in some(200, level=3, seed=1)]
    for other in ({"seed": 2}, {"seed": 1, "split": "test"}, {"seed": 1, "split": "validation"}):
        assert not set(base) & {p.question for p in some(200, level=3, **other)}


def test_neighbouring_seeds_share_almost_nothing():
    seen: dict[str, int] = {}
    for seed in range(40):
        for problem in some(50, level=4, seed=seed):
            seen[problem.question] = seen.get(problem.question, 0) + 1
    assert sum(count - 1 for count in seen.values()) <= 2


@pytest.mark.slow
def test_splits_never_meet_in_any_wording_order_level_or_seed():
    contents: dict[str, set[tuple[object, ...]]] = {split: set() for split in SPLITS}
    for split, content in contents.items():
        for level in LEVELS:
            for seed in range(3):
                for problem in some(250, level=level, seed=seed, split=split, max_number=12):
                    signs = sorted(re.findall(r"//|[-+*]", problem.meta["expression"]))
                    content.add((*sorted(problem.meta["operands"]), *signs))
    assert all(len(content) > 200 for content in contents.values())
    assert not contents["train"] & contents["test"]
    assert not contents["train"] & contents["validation"]
    assert not contents["test"] & contents["validation"]


def test_the_split_of_a_content_is_the_same_for_ever():
    # Fixed values: a change would mix the test set of one version into the training set of the next.
    fixed = {"+ 0,7": "train", "+ 1,8": "train", "+ 3,10": "validation", "+ 18,25": "validation", "+ 34,41": "test"}
    assert {key: split_of(key) for key in fixed} == fixed
    shares = [split_of(str(n)) for n in range(10_000)]
    assert 0.78 < shares.count("train") / 10_000 < 0.82
    assert 0.08 < shares.count("test") / 10_000 < 0.12


def test_an_id_brings_back_its_problem():
    for spec in ("arithmetic", "arithmetic:level=5,max_number=30,seed=9"):
        source = load_problems(spec, split="test")
        problem = source[17]
        assert problem.id == f"{spec}/test/17"
        assert source.get(problem.id) == problem


@pytest.mark.parametrize(
    "wrong", ["arithmetic/train/17", "arithmetic/test/x", "arithmetic/test/-1", "arithmetic/test/017", "17", ""]
)
def test_an_id_of_another_source_is_refused(wrong):
    with pytest.raises(UnknownNameError, match="arithmetic/test/0"):
        load_problems("arithmetic", split="test").get(wrong)


def test_a_negative_index_is_an_index_error():
    with pytest.raises(IndexError):
        load_problems("arithmetic")[-1]


def test_options_that_leave_nothing_for_a_split_say_so():
    # There are two contents with no number but 2, which cannot fill three splits.
    def first(split: str) -> Problem:
        return load_problems("arithmetic", level=1, max_number=2, split=split)[0]

    empty = [split for split in SPLITS if not {split} & {split_of(key) for key in ("+ 2,2", "* 2,2")}]
    assert empty
    for split in empty:
        with pytest.raises(ConfigurationError, match="too few different problems"):
            first(split)


def test_no_global_random_state_is_touched():
    states = random.getstate(), np.random.get_state()[1].tolist()
    some(50, level=5)
    load_problems("arithmetic").sample(np.random.default_rng(0))
    assert (random.getstate(), np.random.get_state()[1].tolist()) == states


def test_an_instance_is_made_with_few_calls():
    source = load_problems("arithmetic", level=5, split="test")
    source[0]
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        for index in range(100):
            source[index]
    finally:
        sys.setprofile(None)
    assert calls / 100 < 2000
