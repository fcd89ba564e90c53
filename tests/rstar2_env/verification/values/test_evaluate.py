"""Values are exact where they are rational and contain the truth where they are not."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
from answer_samples import latex, random_term
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from rstar2_env.verification.read.clean import clean
from rstar2_env.verification.read.parser import read
from rstar2_env.verification.values.ball import (
    Complex,
    TooLargeError,
    UndefinedError,
    UnsupportedError,
    VagueError,
    to_ball,
)
from rstar2_env.verification.values.evaluate import Evaluator, Notation


def value_of(text: str, prec: int = 100, **point: Fraction):
    return Evaluator(point, prec).value(read(clean(text)))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2+3*4", 14),
        ("2^{-3}", Fraction(1, 8)),
        (r"\frac{1}{2}+\frac13", Fraction(5, 6)),
        ("8^{2/3}", 4),
        (r"\sqrt[3]{-8}", -2),
        (r"\sqrt{\frac{9}{4}}", Fraction(3, 2)),
        ("-2^2", -4),
        ("(-2)^2", 4),
        ("2^3^2", 512),
        ("5!", 120),
        ("7!!", 105),
        (r"\binom{10}{3}", 120),
        (r"|3-5|", 2),
        (r"\sum_{k=1}^{100} k", 5050),
        (r"\prod_{k=1}^{5} k", 120),
        (r"6\frac{1}{64}", Fraction(385, 64)),
        ("6 1/64", Fraction(385, 64)),
        (r"\lfloor -3.5 \rfloor", -4),
        (r"\gcd(12, 18)", 6),
        (r"17 \bmod 5", 2),
        ("204_5", 54),
        (r"\begin{vmatrix} 1 & 2 \\ 3 & 4 \end{vmatrix}", -2),
        (r"\max(1, 5, 3)", 5),
        ("e^0", 1),
        (r"\sin 0", 0),
        ("0.1+0.2", Fraction(3, 10)),
        (r"\frac12\cdot 4", 2),
        ("1/2/2", Fraction(1, 4)),
    ],
)
def test_a_rational_value_is_exact(text: str, value: Fraction | int) -> None:
    assert value_of(text) == value


@pytest.mark.parametrize("text", ["1/0", r"\sqrt{-1}", r"\ln 0", "0^0", r"\arcsin 2", "(-1)!", r"\tan^{-1}(1/0)", "i"])
def test_what_is_not_defined_over_the_reals_has_no_value(text: str) -> None:
    with pytest.raises(UndefinedError):
        value_of(text)


@pytest.mark.parametrize("text", [r"\lim_{x\to0} x", r"\int_0^1 x\,dx", r"\sum_{k=1}^{\infty} 1", "foo(2)bar"])
def test_what_is_not_known_is_not_guessed(text: str) -> None:
    with pytest.raises(UnsupportedError):
        value_of(text)


@pytest.mark.parametrize("text", ["e^{e^{99}}", "100000!", r"\sum_{k=1}^{10^9} k", "2^{10^{300}}"])
def test_what_is_out_of_proportion_is_refused(text: str) -> None:
    with pytest.raises((TooLargeError, OverflowError)):
        value_of(text)


FUNCTIONS = {
    "sin": mpmath.sin,
    "cos": mpmath.cos,
    "tan": mpmath.tan,
    "cot": mpmath.cot,
    "sec": mpmath.sec,
    "csc": mpmath.csc,
    "sinh": mpmath.sinh,
    "cosh": mpmath.cosh,
    "tanh": mpmath.tanh,
    "arcsin": mpmath.asin,
    "arccos": mpmath.acos,
    "arctan": mpmath.atan,
    "exp": mpmath.exp,
    "ln": mpmath.log,
    "sqrt": mpmath.sqrt,
}


def ends(ball: arb) -> tuple[mpmath.mpf, mpmath.mpf]:
    return tuple(mpmath.mpf(tuple(map(int, end.man_exp()))) for end in (ball.lower(), ball.upper()))


@given(st.sampled_from(sorted(FUNCTIONS)), st.fractions(min_value=-20, max_value=20, max_denominator=1000))
def test_an_interval_contains_the_true_value(name: str, x: Fraction) -> None:
    text = rf"\sqrt{{({x})}}" if name == "sqrt" else rf"\{name}(({x}))"
    try:
        ball = to_ball(value_of(text, 64))
    except (UndefinedError, VagueError):
        return
    with mpmath.workprec(300):
        truth = FUNCTIONS[name](mpmath.mpf(x.numerator) / x.denominator)
        low, high = ends(ball)
        assert low <= truth <= high
        assert high - low <= abs(truth) * mpmath.mpf(2) ** -40 + mpmath.mpf(2) ** -40


@settings(max_examples=200)
@given(st.randoms(use_true_random=False))
def test_more_precision_narrows_the_same_interval(chance) -> None:
    tree = read(clean(latex(chance, random_term(chance, 3, ()))))
    try:
        coarse, fine = Evaluator({}, 64).value(tree), Evaluator({}, 300).value(tree)
    except (UndefinedError, VagueError, TooLargeError):
        return
    assert not isinstance(coarse, Complex)
    assert not isinstance(fine, Complex)
    assert to_ball(coarse).overlaps(to_ball(fine))


def test_complex_values_are_principal() -> None:
    tree = read(clean(r"(-8)^{1/3}"))
    assert Evaluator({}, 100).value(tree) == -2
    value = Evaluator({}, 100, Notation(over_complex=True)).value(tree)
    assert isinstance(value, Complex)
    assert abs(value - Complex(1, arb(3).sqrt())) < 1e-20


@pytest.mark.parametrize("text", [r"(\ln 2 - \ln 2)^2", r"(\ln 2 - \ln 2)^3", r"(\sqrt2 + \sqrt3 - \sqrt3 - \sqrt2)^4"])
def test_a_power_of_what_may_be_zero_is_known(text: str) -> None:
    value = to_ball(value_of(text, 200))
    assert value.contains(0)
    assert value.abs_upper() < 1e-40
