"""Units are read, and converted exactly."""

from __future__ import annotations

from fractions import Fraction

import pytest

from rstar2_env.verification import verify
from rstar2_env.verification.read.units import read_unit


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
    ],
)
def test_a_unit_is_a_multiple_of_base_units(text: str, factor: Fraction, dimension: dict[str, int]) -> None:
    unit = read_unit(text)
    assert unit is not None
    assert unit.factor == factor
    assert dict(unit.dimension) == dimension


@pytest.mark.parametrize("text", ["", "apples", "blue cars", "m of rope", "M", "cm^99"])
def test_other_words_are_no_units(text: str) -> None:
    assert read_unit(text) is None


def test_a_newton_is_what_it_is_made_of() -> None:
    assert read_unit("N") == read_unit("kg m s^-2")
    assert verify(r"5\text{ N}", r"5\text{ kg m/s^2}", timeout=10.0).correct


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("500 mmol", "0.5 mol"),
        ("2 microfarads", "0.002 millifarads"),
        ("3 GHz", "3000 MHz"),
        ("5 kilograms", "5000 grams"),
    ],
)
def test_prefixes_of_units_are_powers_of_ten(one: str, other: str) -> None:
    assert verify(one, other, timeout=10.0).correct
