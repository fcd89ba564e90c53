"""rstar2/Alphametic-v0: one solution by brute force over all digits, and answers in the documented forms."""

from itertools import permutations

import pytest

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.envs_registry.alphametic import Alphametic
from rstar2_env.worlds import UnreadableAnswerError
from rstar2_env.worlds.alphametic import holds, interchangeable, is_unique, solutions

MONEY = {"addends": ["SEND", "MORE"], "total": "MONEY"}
RIGHT = "S=9, E=5, N=6, D=7, M=1, O=0, R=8, Y=2"


def brute_force(addends, total):
    letters = sorted({*"".join(addends), *total})
    choices = (dict(zip(letters, digits, strict=True)) for digits in permutations(range(10), len(letters)))
    return [digits for digits in choices if holds(addends, total, digits)]


@pytest.mark.parametrize(
    ("addends", "total", "count"),
    [
        (["SEND", "MORE"], "MONEY", 1),
        (["TWO", "TWO"], "FOUR", 7),
        (["A", "B"], "C", 32),
        (["A", "A"], "A", 0),
        (["AB", "BA"], "CAC", 1),
    ],
)
def test_the_solver_finds_every_solution(addends, total, count):
    found = list(solutions(addends, total))
    assert len(found) == count
    assert all(holds(addends, total, digits) for digits in found)
    assert is_unique(addends, total) == (count == 1)
    if len({*"".join(addends), *total}) <= 6:
        assert sorted(map(sorted_items, found)) == sorted(map(sorted_items, brute_force(addends, total)))


def sorted_items(digits):
    return sorted(digits.items())


@pytest.mark.parametrize(
    ("knobs", "count"), [({}, 2), ({"length": 4, "letters": 5}, 5), ({"addends": 3, "length": 4}, 1)]
)
def test_an_instance_has_exactly_one_solution(knobs, count):
    source = Alphametic(**knobs).source()
    for index in range(count):
        problem = source[index]
        (digits,) = brute_force(problem.meta["addends"], problem.meta["total"])
        assert problem.answer == ", ".join(f"{letter}={digits[letter]}" for letter in sorted(digits))
        assert f"{' + '.join(problem.meta['addends'])} = {problem.meta['total']}" in problem.question


@pytest.mark.parametrize(("addends", "length", "letters"), [(2, 5, 7), (2, 6, 9), (2, 4, 5)])
def test_knobs_shape_the_sum(addends, length, letters):
    source = Alphametic(addends, length, letters).source()
    for index in range(5):
        meta = source[index].meta
        assert [len(word) for word in meta["addends"]] == [length] * addends
        assert len({*"".join(meta["addends"]), *meta["total"]}) == letters


def test_letters_that_can_be_exchanged_leave_no_unique_solution():
    assert interchangeable(["ABC", "ADC"], "EFG")
    assert not interchangeable(["SEND", "MORE"], "MONEY")
    assert not is_unique(["ABC", "ADC"], "EFG")


@pytest.mark.parametrize(
    "answer",
    [
        RIGHT,
        "M=1,S=9,E=5,N=6,D=7,O=0,R=8,Y=2",
        "S: 9; E: 5; N: 6; D: 7; M: 1; O: 0; R: 8 and Y: 2.",
        "S -> 9\nE -> 5\nN -> 6\nD -> 7\nM -> 1\nO -> 0\nR -> 8\nY -> 2",
        "{S=9, E=5, N=6, D=7, M=1, O=0, R=8, Y=2}",
        "S9 E5 N6 D7 M1 O0 R8 Y2",
        "$S=9,\\ E=5,\\; N=6, D=7, M=1, O=0, R=8, Y=2$",
        "S \\to 9, E \\to 5, N \\to 6, D \\to 7, M \\to 1, O \\to 0, R \\to 8, Y \\to 2",
    ],
)
def test_the_documented_forms_count(answer):
    assert Alphametic().solves(MONEY, answer)


@pytest.mark.parametrize(
    "answer",
    [
        "S=9, E=5, N=6, D=7, M=1, O=0, R=8, Y=3",
        "S=5, E=9, N=6, D=7, M=1, O=0, R=8, Y=2",
        "S=2, E=8, N=1, D=7, M=0, O=3, R=6, Y=5",
        "S=1, E=1, N=1, D=1, M=1, O=1, R=1, Y=2",
    ],
)
def test_wrong_digits_do_not(answer):
    assert not Alphametic().solves(MONEY, answer)


def test_the_sum_must_hold_with_different_digits_and_no_leading_zero():
    # All letters 0 make a sum that comes out, and so do 2817 + 0368 = 03185: equal digits there, leading zeros here.
    assert not holds(["SEND", "MORE"], "MONEY", dict.fromkeys("SENDMORY", 0))
    zeros = {"S": 2, "E": 8, "N": 1, "D": 7, "M": 0, "O": 3, "R": 6, "Y": 5}
    assert 2817 + 368 == 3185
    assert not holds(["SEND", "MORE"], "MONEY", zeros)
    assert holds(["SEND", "MORE"], "MONEY", dict(zip("SENDMORY", (9, 5, 6, 7, 1, 0, 8, 2), strict=True)))


@pytest.mark.parametrize(
    "answer",
    [
        *("", "9567 + 1085 = 10652", RIGHT[:-5], f"{RIGHT}, X=3", f"{RIGHT}, S=9", RIGHT.lower(), f"({RIGHT})+1"),
        *(RIGHT.replace("=9", "=19"), RIGHT.replace("=9", "=9.5"), RIGHT.replace("S=9", "9=S"), f"maybe {RIGHT}"),
    ],
)
def test_anything_else_is_unreadable(answer):
    with pytest.raises(UnreadableAnswerError):
        Alphametic().solves(MONEY, answer)


def test_more_letters_than_leave_unique_sums_are_refused():
    with pytest.raises(ConfigurationError, match="letters must be an integer from 4 to 5, not 8"):
        Alphametic(length=3, letters=8)
