"""Units are read, and converted exactly."""

from __future__ import annotations

from fractions import Fraction

import pytest

from rstar2_env.verification import verify
from rstar2_env.verification.read.lexer import UNIT_LETTERS
from rstar2_env.verification.read.units import TABLE_FILES, read_unit
from rstar2_env.verification.read.vocabulary import OPERATORS


@pytest.mark.parametrize(
    ("text", "factor", "dimension"),
    [
        ("cm", Fraction(1, 100), {"m": 1}),
        ("cm^2", Fraction(1, 10_000), {"m": 2}),
        ("square centimeters", Fraction(1, 10_000), {"m": 2}),
        ("cubic feet", Fraction(381, 1250) ** 3, {"m": 3}),
        ("meters squared", 1, {"m": 2}),
        ("km/h", Fraction(5, 18), {"m": 1, "s": -1}),
        ("miles per hour", Fraction(201168, 450_000), {"m": 1, "s": -1}),
        ("N m", 1, {"kg": 1, "m": 2, "s": -2}),
        ("kg m/s^2", 1, {"kg": 1, "m": 1, "s": -2}),
        ("$", 1, {"USD": 1}),
        ("cents", Fraction(1, 100), {"USD": 1}),
        ("minutes", 60, {"s": 1}),
        ("nautical miles", 1852, {"m": 1}),
        ("arcminutes", Fraction(1, 60), {"deg": 1}),
        ("kcal", 4184, {"kg": 1, "m": 2, "s": -2}),
        ("mol/L", 1000, {"mol": 1, "m": -3}),
        ("rads", 1, {}),
        ("Gal", Fraction(473176473, 125_000_000_000), {"m": 3}),
        ("mil", Fraction(9, 160), {"deg": 1}),
    ],
)
def test_a_unit_is_a_multiple_of_base_units(text: str, factor: Fraction, dimension: dict[str, int]) -> None:
    unit = read_unit(text)
    assert unit is not None
    assert unit.factor == factor
    assert dict(unit.dimension) == dimension


@pytest.mark.parametrize(
    "text", ["", "apples", "blue cars", "m of rope", "M", "cm^99", "xyz", "a", "b", "lambda", "cd"]
)
def test_other_words_are_no_units(text: str) -> None:
    assert read_unit(text) is None


@pytest.mark.parametrize("text", ["fifths", "quarters", "hands", "bags", "at", "th", "are", "points", "sections"])
def test_words_that_count_or_change_a_number_are_no_units(text: str) -> None:
    assert read_unit(text) is None


def test_the_table_has_no_word_that_changes_a_number() -> None:
    written = [line.partition(" = ")[0].split() for line in TABLE_FILES[0].read_text(encoding="utf-8").splitlines()[1:]]
    names = {name.replace("_", " ") for row in written for name in row}
    assert len(names) > 1000
    assert names & OPERATORS == {"degree", "second"}
    assert {name for name in names if len(name) == 1} <= UNIT_LETTERS | {"°"}
    assert all(read_unit(name) is not None for name in names)


def test_a_newton_is_what_it_is_made_of() -> None:
    assert read_unit("N") == read_unit("kg m s^-2")
    assert verify(r"5\text{ N}", r"5\text{ kg m/s^2}", timeout_s=10.0).correct


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("500 mmol", "0.5 mol"),
        ("2 microfarads", "0.002 millifarads"),
        ("3 GHz", "3000 MHz"),
        ("5 kilograms", "5000 grams"),
        ("1 pint", "2 cups"),
        ("2 tons", "4000 pounds"),
        ("1 acre", "43560 square feet"),
        ("30 arcminutes", "0.5 degrees"),
        (r"20^\circ C", "20 degrees celsius"),
        ("1 horsepower", "550 ft lbf/s"),
        ("18 MJ", "5 kWh"),
        ("250 ml", "250 ML"),
        ("250 mm", "250 MM"),
        ("5 KB", "40 Kb"),
        ("5 feet", "5'"),
        ("70 inches", "5' 10\""),
        ("28 inches", '28"'),
    ],
)
def test_units_are_converted(one: str, other: str) -> None:
    assert verify(one, other, timeout_s=10.0).correct


@pytest.mark.parametrize(
    ("gold", "answer"),
    [("5 MB", "5 Mb"), ("5 MJ", "5 mJ"), ("5 Mg", "5 mg"), ("5 megaliters", "5 ML"), ("28", '28"'), ("28", "28'")],
)
def test_other_units_are_not_equal(gold: str, answer: str) -> None:
    assert not verify(gold, answer, timeout_s=10.0).correct


def test_a_sign_of_a_unit_counts_if_the_question_names_the_unit() -> None:
    assert verify("28", '28"', question="How many inches long is it?", timeout_s=10.0).correct
    assert not verify("28", '28"', question="How many miles long is it?", timeout_s=10.0).correct
    assert verify("28", '"28"', timeout_s=10.0).correct  # a pair of quotation marks
