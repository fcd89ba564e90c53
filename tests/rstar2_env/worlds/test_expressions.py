"""Expressions are read without running anything, valued exactly, and solved exhaustively."""

from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rstar2_env.worlds import UnreadableAnswerError
from rstar2_env.worlds.expressions import (
    random_expression,
    random_whole_expression,
    read_expression,
    solve,
    uses_each_at_most_once,
    uses_each_once,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("1+2*3", 7),
        ("(1+2)*3", 9),
        ("8-3-2", 3),
        ("8/4/2", 1),
        ("8/(3-8/3)", 24),
        ("1/3+1/3+1/3", 1),
        (" ( 1 + 2 ) \n* 3 ", 9),
        ("((((5))))", 5),
        ("6 × 4", 24),
        ("48÷2−0", 24),
        ("6 \\times 4", 24),
        ("6\\cdot 4", 24),
        ("48 \\div 2", 24),
        ("\\left(1+2\\right)\\times 8", 24),
        ("[1+2]*8", 24),
        ("\\frac{48}{2}", 24),
        ("\\dfrac{8}{3-\\frac{8}{3}}", 24),
        ("\\text{(1+2)*8}", 24),
        ("$6*4$", 24),
    ],
)
def test_what_is_read_has_its_exact_value(text, value):
    assert read_expression(text).value() == value


def test_the_target_may_follow_behind_an_equals_sign_and_nothing_else():
    assert read_expression("6*4 = 24", 24).value() == 24
    for text, target in (("6*4 = 25", 24), ("6*4=24", None), ("6*4=24=24", 24), ("24=6*4", 24), ("6*4=", 24)):
        with pytest.raises(UnreadableAnswerError):
            read_expression(text, target)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "+", "1+", "*2", "-1", "1--2", "1+(-2)", "+3", "()", "(1", "1)", ")(", "1 2", "2(3)", "(1)(2)"),
        *("2**3", "2^3", "2//3", "1.5", "08", "1e3", "x", "__import__('os')", "1_000", "٣+1", "²", "1;2", "9" * 10),
        *("(" * 300 + "1", "1+" * 500, "\\frac{1}{2", "\\sqrt{4}", "4!", "1,2"),
    ],
)
def test_anything_else_is_unreadable(text):
    with pytest.raises(UnreadableAnswerError):
        read_expression(text)


def test_a_division_by_zero_has_no_value():
    assert read_expression("1/(2-2)").value() is None
    assert read_expression("0/2").value() == 0


def test_the_numbers_are_those_written():
    assert read_expression("(12+3)*3/1").numbers == (12, 3, 3, 1)


def test_each_once_and_each_at_most_once():
    assert uses_each_once([3, 1, 3], [1, 3, 3])
    assert not uses_each_once([3, 1], [1, 3, 3])
    assert not uses_each_once([3, 1, 1], [1, 3, 3])
    assert uses_each_at_most_once([3, 1], [1, 3, 3])
    assert not uses_each_at_most_once([1, 1], [1, 3, 3])


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10_000), count=st.integers(1, 7))
def test_a_random_expression_uses_every_number_and_has_pythons_value(seed, count):
    rng = np.random.default_rng(seed)
    numbers = rng.integers(1, 20, size=count).tolist()
    text = random_expression(numbers, rng)
    reading = read_expression(text)
    assert uses_each_once(reading.numbers, numbers)
    exact = "".join(f"Fraction({part})" if part.isdigit() else part for part in _parts(text))
    try:
        assert reading.value() == eval(exact, {"Fraction": Fraction})
    except ZeroDivisionError:
        assert reading.value() is None


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10_000), count=st.integers(1, 6))
def test_a_random_whole_expression_has_the_value_that_it_says(seed, count):
    rng = np.random.default_rng(seed)
    numbers = rng.integers(1, 20, size=count).tolist()
    if (found := random_whole_expression(numbers, rng)) is not None:
        reading = read_expression(found[0])
        assert uses_each_once(reading.numbers, numbers)
        assert reading.value() == found[1] >= 1


@pytest.mark.parametrize(
    "numbers", [(3, 3, 8, 8), (1, 5, 5, 5), (3, 3, 7, 7), (1, 3, 4, 6), (2, 5, 5, 10), (1, 4, 5, 6), (6, 6, 6, 6)]
)
def test_hands_that_need_fractions_are_solved(numbers):
    answer = read_expression(solve(numbers, 24))
    assert answer.value() == 24
    assert uses_each_once(answer.numbers, numbers)


@pytest.mark.parametrize("numbers", [(1, 1, 1, 1), (1, 6, 7, 7), (13, 13, 13, 13), (1, 1, 2, 5)])
def test_hands_without_a_solution_have_none(numbers):
    assert solve(numbers, 24) is None


def test_one_number_alone_and_the_target_zero():
    assert solve([24], 24) == "24"
    assert solve([23], 24) is None
    assert read_expression(solve([3, 3], 0)).value() == 0
    assert read_expression(solve([5, 2, 3], 0)).value() == 0


@pytest.mark.slow
def test_1362_of_the_1820_hands_make_24():
    hands = list(combinations_with_replacement(range(1, 14), 4))
    answers = {hand: solve(hand, 24) for hand in hands}
    for hand, answer in answers.items():
        if answer is not None:
            assert read_expression(answer).value() == 24
            assert uses_each_once(read_expression(answer).numbers, hand)
    assert (len(hands), sum(answer is not None for answer in answers.values())) == (1820, 1362)


def _parts(text):
    import re

    return re.findall(r"\d+|\D", text)
