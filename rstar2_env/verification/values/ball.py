"""Exact numbers (``Fraction``) and balls, real or complex, that contain a number.

A thin layer over the ball arithmetic of FLINT. Every result contains the true value, so two results that do not overlap
belong to different numbers, and a single evaluation can refute an equality. The precision is that of FLINT's context,
which ``Evaluator`` sets; it is bounded, and so is the cost of every operation. Not covered: trees (see ``evaluate``).
"""

from __future__ import annotations

from fractions import Fraction
from typing import TypeAlias, TypeVar

from flint import acb, arb, fmpq

Complex: TypeAlias = acb
Real: TypeAlias = Fraction | arb
Value: TypeAlias = Fraction | arb | acb
_Ball = TypeVar("_Ball", arb, acb)

MAX_BITS = 20_000
"""A fraction with more bits than this is replaced by a ball."""

MAX_ARGUMENT = 1 << 24
"""Largest argument of the exponential and trigonometric functions."""

_TINY = -(1 << 60)


class NoValueError(Exception):
    """The expression could not be evaluated; the subclass gives the cause."""


class UndefinedError(NoValueError):
    """There is no value: a division by zero, a root outside its domain."""


class UnsupportedError(NoValueError):
    """The expression contains something that this package cannot evaluate, such as an integral."""


class VagueError(NoValueError):
    """The ball is too wide to decide; more precision may help."""


class TooLargeError(Exception):
    """The value is too large to compute with."""


def to_ball(value: Real) -> arb:
    """Return a real value as a ball."""
    return arb(fmpq(value.numerator, value.denominator)) if isinstance(value, Fraction) else value


def to_complex(value: Value) -> acb:
    """Return a value as a complex ball."""
    return value if isinstance(value, acb) else acb(to_ball(value))


def known(value: _Ball) -> _Ball:
    """Return a ball unchanged; raise an error if it is unbounded.

    Raises:
        VagueError: The ball is unbounded, because it contains a point at which an operation has no value.
    """
    if not value.is_finite():
        raise VagueError
    return value


def bounded(value: Fraction) -> Real:
    """Return a fraction unchanged if it has at most ``MAX_BITS`` bits; otherwise a ball that contains it."""
    if value.numerator.bit_length() + value.denominator.bit_length() > MAX_BITS:
        return to_ball(value)
    return value


def magnitude(value: Value) -> Real:
    """Return the absolute value of a number or ball."""
    size: Real = abs(value)  # type: ignore[assignment]  # the checker joins the two results to "object"
    return size


def sign(value: Real) -> int | None:
    """Return the sign, -1, 0 or 1; ``None`` if the ball does not determine it."""
    if value > 0:
        return 1
    if value < 0:
        return -1
    return 0 if value == 0 else None


def contains_zero(value: arb | acb) -> bool:
    """Return whether a ball contains zero."""
    return bool(value.contains(0))


def check_argument(value: arb) -> arb:
    """Return an argument unchanged; raise an error if it is too large for an exponential or a sine.

    Raises:
        TooLargeError: Its absolute value may exceed ``MAX_ARGUMENT``.
    """
    if not value.abs_upper() <= MAX_ARGUMENT:
        raise TooLargeError
    return value


def _exponent(exact: arb) -> int:
    """Return an exponent e such that an exact number is at most 2**e; a very small number for zero."""
    digits, exponent = exact.man_exp()
    return int(exponent) + abs(int(digits)).bit_length() if digits else _TINY


def width_exponent(value: arb) -> int:
    """Return an exponent e such that the ball is at most 2**e wide; a very small number for a point."""
    return _exponent(value.rad()) + 1


def size_exponent(value: arb) -> int:
    """Return an exponent e such that no absolute value in the ball exceeds 2**e; a very small number for zero."""
    return _exponent(value.abs_upper())


def floor_of(value: arb) -> int:
    """Return the floor of the values in a ball.

    Raises:
        VagueError: The values in the ball have different floors.
        TooLargeError: The value has more than 4,000 bits.
    """
    if size_exponent(value) > 4000:
        raise TooLargeError
    low, high = value.lower().floor().unique_fmpz(), value.upper().floor().unique_fmpz()
    if low is None or low != high:
        raise VagueError
    return int(low)


def middle(value: arb) -> Fraction:
    """Return the exact midpoint of the ball.

    Raises:
        TooLargeError: Its exponent is too large to compute with.
    """
    if not (-4000 < size_exponent(value) < 4000 or value == 0):
        raise TooLargeError
    exact = value.mid().fmpq()
    return Fraction(int(exact.p), int(exact.q))


def approximate(value: arb) -> float:
    """Return a float inside or near the ball; for sorting only."""
    return float(value.mid())
