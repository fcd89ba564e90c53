"""Claims about renamed columns, extractions and conditions."""

from __future__ import annotations

import pytest

from rstar2_env.core.errors import ConfigurationError, ProblemFormatError
from rstar2_env.problems import Problem, load_problems
from rstar2_env.problems.filters import parse_where

RECORD = {
    "prompt": [{"role": "user", "content": "How many?"}],
    "solution": "6*7 = <<6*7=42>>42\n#### 1,042",
    "worked": "so $\\boxed{1} + \\boxed{\\frac{1}{2}}$.",
    "a.b": "dotted",
    "level": 3,
}


def one(**columns):
    return load_problems([RECORD], columns={"question": "prompt.0.content", **columns})[0]


@pytest.mark.parametrize(
    ("column", "answer"),
    [
        ("solution|after:####", "1,042"),
        ("solution|before:####", "6*7 = <<6*7=42>>42"),
        ("solution|after:####|after:,", "042"),
        ("worked|boxed", "\\frac{1}{2}"),
        ("solution|regex:<<.*?=(\\d+)>>", "42"),
        ("solution|regex:#|[0-9,]+$", "1,042"),
        ("a.b", "dotted"),
        ("level", "3"),
    ],
)
def test_a_field_comes_from_where_the_column_says(column, answer):
    problem = one(answer=column)
    assert (problem.question, problem.answer) == ("How many?", answer)


def test_a_column_that_a_field_took_whole_does_not_go_to_meta_and_the_others_do():
    assert set(one(answer="solution|after:####", difficulty="level").meta) == {
        "prompt", "solution", "worked", "a.b", "difficulty",
    }  # fmt: skip


def test_keep_names_what_goes_to_meta():
    source = load_problems([RECORD], columns={"question": "prompt.0.content", "answer": "level"}, keep=["worked"])
    assert set(source[0].meta) == {"worked"}


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ("nowhere", "nowhere does not exist; there are 'prompt'"),
        ("prompt.3.content", r"prompt\.3 does not exist; there is a list of 1"),
        ("level.x", r"level\.x does not exist; there is int '3'"),
        ("solution|after:@@", "after:@@ finds nothing"),
        ("solution|boxed", "boxed finds nothing"),
    ],
)
def test_a_column_that_is_not_there_is_named_with_the_place(column, said):
    with pytest.raises(ProblemFormatError, match=r"problems\[0\].*'answer'.*" + said):
        one(answer=column)


@pytest.mark.parametrize("column", ["", "|boxed", "a|first", "a|after", "a|boxed:x", "a|regex:(", "a|regex:", 5])
def test_a_column_that_cannot_be_read_is_refused(column):
    with pytest.raises(ConfigurationError):
        one(answer=column)


PROBLEM = Problem("p-1", "What is it?", "42", "here", {"level": 3, "deep": {"er": "x"}, "tags": ["a", "b"], "n": "7"})


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("level <= 3", True),
        ("level > 3", False),
        ("level == 3", True),
        ("meta.level != 3", False),
        ("answer ~ ^-?\\d+$", True),
        ("question !~ what", True),
        ("question ~ (?i)what", True),
        ("source == here", True),
        ('source == "here"', True),
        ("len(question) < 11", False),
        ("len(tags) == 2", True),
        ("deep.er == x", True),
        ("answer >= 42", True),
        ("n < 8", True),
        ("nowhere == 1", False),
        ("nowhere != 1", True),
        ("nowhere < 1", False),
        ("tags < 1", False),
        ("id ~ ^p-", True),
    ],
)
def test_a_condition_holds_or_not(condition, holds):
    assert parse_where(condition)(PROBLEM) is holds


@pytest.mark.parametrize("condition", ["", "level", "level =", "level = 3", "~ x", "answer ~ (", 5])
def test_a_condition_that_cannot_be_read_is_refused(condition):
    with pytest.raises(ConfigurationError):
        parse_where(condition)


def test_all_conditions_must_hold_and_a_function_is_one():
    records = [{"question": f"q{n}", "answer": n} for n in range(10)]
    source = load_problems(records, where=["answer > 2", lambda problem: int(problem.answer) % 2 == 0])
    assert [problem.answer for problem in source] == ["4", "6", "8"]


def test_conditions_that_nothing_meets_are_an_error():
    with pytest.raises(ProblemFormatError, match="does not meet every condition"):
        load_problems([{"question": "q", "answer": 1}], where="answer == 2")
