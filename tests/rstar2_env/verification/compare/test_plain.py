"""Plain numbers are compared exactly, in microseconds, without a worker."""

from __future__ import annotations

import subprocess
import sys
import timeit
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rstar2_env.verification import Reason, verify
from rstar2_env.verification.compare.plain import MAX_DIGITS, read_plain


@given(st.integers(min_value=-(10**30), max_value=10**30))
def test_an_integer_equals_itself_however_it_is_written(value: int) -> None:
    for text in (str(value), f"{value:,}", f"${value}$", f" {value} ", f"{value}.0", f"{value}/1"):
        verdict = verify(str(value), text)
        assert (verdict.correct, verdict.method) == (True, "number"), text


@given(st.integers(min_value=-(10**18), max_value=10**18), st.integers(min_value=1, max_value=10**6))
def test_no_integer_equals_another(value: int, step: int) -> None:
    assert verify(str(value), str(value + step)).reason is Reason.DIFFERENT


@given(st.integers(-(10**9), 10**9), st.integers(1, 10**6), st.integers(2, 50))
def test_a_fraction_equals_its_multiple(top: int, bottom: int, factor: int) -> None:
    assert verify(f"{top}/{bottom}", rf"\frac{{{top * factor}}}{{{bottom * factor}}}").correct


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9, places=6))
def test_a_decimal_reads_as_its_exact_value(value: Decimal) -> None:
    number = read_plain(f"{value:f}")
    assert number is not None
    assert number.value == Fraction(value)


@pytest.mark.parametrize(
    "text", ["", "x", "1,2", "1,23", "5%", "5 cm", "1 2", "0x10", "1/0", "--1", "1e99999", "²", "nan", "inf", "1_000"]
)
def test_what_is_not_plain_is_left_to_other_layers(text: str) -> None:
    assert read_plain(text) is None


@pytest.mark.parametrize("text", ["03/04", "3/04", "03/4", r"\frac{03}{4}", r"\frac{3}{04}", r"-\frac{03}{04}"])
def test_a_fraction_with_a_leading_zero_is_no_number(text: str) -> None:
    assert read_plain(text) is None
    assert not verify("-3/4" if text[0] == "-" else "3/4", text, timeout_s=10.0).correct


def test_an_integer_or_decimal_may_have_leading_zeros() -> None:
    assert verify("25", "025").correct
    assert verify("0.5", "00.5").correct
    assert verify("0/5", "0/7").correct


def test_a_number_of_many_digits_is_not_converted() -> None:
    # Python's own conversion of digits is quadratic, and refuses more than 4,300 of them with an exception.
    assert read_plain("9" * (MAX_DIGITS + 1)) is None
    assert verify("7", "9" * 100_000).reason is Reason.TOO_LARGE


@pytest.mark.parametrize(
    ("gold", "answer", "tolerance", "right"),
    [("100", "101", 0.01, True), ("100", "102", 0.01, False), ("0", "0.001", 0.01, True), ("-2", "-2.01", 0.005, True)],
)
def test_a_tolerance_is_relative_to_the_gold(gold: str, answer: str, tolerance: float, right: bool) -> None:
    assert verify(gold, answer, tolerance=tolerance).correct is right


def test_plain_numbers_cost_microseconds() -> None:
    # 4 on an idle machine; the bound is for a busy one.
    best = min(timeit.repeat(lambda: verify("12345", "0012345.0"), number=2_000, repeat=5)) / 2_000
    assert best < 200e-6


def test_plain_numbers_import_no_algebra() -> None:
    program = (
        "import sys; from rstar2_env.verification import verify; assert verify('1/2', '0.5').correct;"
        "print(sorted({'sympy', 'mpmath', 'math_verify', 'antlr4', 'typer', 'rich', 'sqlite3'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
