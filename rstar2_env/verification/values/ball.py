"""Values of expressions: exact fractions, and balls (real or complex intervals) that contain the true value.

This is a thin layer over the ball arithmetic of FLINT. Two balls that do not overlap belong to different numbers, so a
single evaluation can refute an equality. ``Evaluator`` sets the precision in FLINT's context; since the precision is
bounded, so is the cost of every operation. Not covered: trees (see ``evaluate``).
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
"""Largest number of bits of an exact fraction; a larger fraction is replaced by a ball."""

MAX_ARGUMENT = 1 << 24
"""Largest absolute value of the argument of an exponential or trigonometric function."""

_TINY = -(1 << 60)


class NoValueError(Exception):
    """The expression could not be evaluated; each subclass is one cause."""


class UndefinedError(NoValueError):
    """The expression has no value: a division by zero, or an argument outside of a function's domain."""


class UnsupportedError(NoValueError):
    """The expression contains something that this package cannot evaluate, such as an integral."""


class VagueError(NoValueError):
    """A ball (an interval that contains the true value) is too wide to decide a question; more precision may help."""


class TooLargeError(Exception):
    """A value is too large to compute with."""


def to_ball(value: Real) -> arb:
    """Convert a real value to a ball."""
    return arb(fmpq(value.numerator, value.denominator)) if isinstance(value, Fraction) else value


def to_complex(value: Value) -> acb:
    """Convert a value to a complex ball."""
    return value if isinstance(value, acb) else acb(to_ball(value))


def known(value: _Ball) -> _Ball:
    """Return a ball unchanged if it is bounded; otherwise raise an error.

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
    """Return the sign of a value, -1, 0 or 1; ``None`` if the ball does not determine it."""
    if value > 0:
        return 1
    if value < 0:
        return -1
    return 0 if value == 0 else None


def contains_zero(value: arb | acb) -> bool:
    """Return whether a ball contains zero."""
    return bool(value.contains(0))


def check_argument(value: arb) -> arb:
    """Return the argument of an exponential or trigonometric function unchanged; raise an error if it is too large.

    Raises:
        TooLargeError: The argument's absolute value may exceed ``MAX_ARGUMENT``.
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
    """Return the floor of all values in a ball.

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


def middle(value: Real) -> Fraction:
    """Return the exact midpoint of a ball; a fraction unchanged.

    Raises:
        TooLargeError: The midpoint's exponent is too large to compute with.
    """
    if isinstance(value, Fraction):
        return value
    if not (-4000 < size_exponent(value) < 4000 or value == 0):
        raise TooLargeError
    exact = value.mid().fmpq()
    return Fraction(int(exact.p), int(exact.q))
