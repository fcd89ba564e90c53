"""Numbers that are known exactly (``Fraction``) or to lie in an interval, real or complex.

A thin layer over mpmath's rigorous interval functions. Every result contains the true value, so two results that do not
overlap belong to different numbers, and a single evaluation can refute an equality. Precision is bounded, and with it
the cost of every operation. Not covered: trees (see ``evaluate``).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from mpmath.libmp import (  # type: ignore[import-untyped]  # mpmath ships no types
    fone,
    from_int,
    from_rational,
    fzero,
    libmpi,
    mpf_cmp,
    mpf_neg,
    mpf_sign,
    to_float,
    to_int,
    to_rational,
)

Interval = tuple[Any, Any]
"""Lower and upper end, as mpmath's raw floats."""

MAX_BITS = 20_000
"""A fraction with more bits than this is kept as an interval instead."""

MAX_ARGUMENT = 1 << 24
"""Largest argument of the exponential and trigonometric functions."""


class UndefinedError(Exception):
    """There is no value: a division by zero, a root outside its domain."""


class UnsupportedError(Exception):
    """The expression contains something that has no value here."""


class VagueError(Exception):
    """The interval is too wide to decide; more precision may help."""


class TooLargeError(Exception):
    """The value is too large to compute with."""


@dataclass(frozen=True, slots=True)
class Complex:
    """A complex number: an interval for each part."""

    re: Interval
    im: Interval


def typed(value: object) -> Interval:
    """Give mpmath's untyped result its type."""
    return value  # type: ignore[return-value]  # a pair of raw floats, as libmpi documents


Value = Fraction | Interval | Complex

ZERO_INTERVAL: Interval = (fzero, fzero)
ONE_INTERVAL: Interval = (fone, fone)


def to_interval(value: Fraction | Interval, prec: int) -> Interval:
    """The value as an interval of ``prec`` bits."""
    if isinstance(value, Fraction):
        top, bottom = value.numerator, value.denominator
        if bottom == 1 and abs(top).bit_length() <= prec:
            exact = from_int(top)
            return exact, exact
        return from_rational(top, bottom, prec, "f"), from_rational(top, bottom, prec, "c")
    return value


def to_complex(value: Value, prec: int) -> tuple[Interval, Interval]:
    """The value as the pair of intervals that mpmath's complex functions take."""
    if isinstance(value, Complex):
        return value.re, value.im
    return to_interval(value, prec), ZERO_INTERVAL


def bounded(value: Fraction, prec: int) -> Fraction | Interval:
    """The fraction if its size is within ``MAX_BITS``, otherwise an interval that contains it."""
    if value.numerator.bit_length() + value.denominator.bit_length() > MAX_BITS:
        return to_interval(value, prec)
    return value


def sign(interval: Interval) -> int | None:
    """The sign, -1, 0 or 1; ``None`` if the interval does not determine it."""
    low, high = mpf_sign(interval[0]), mpf_sign(interval[1])
    return low if low == high else None


def contains_zero(interval: Interval) -> bool:
    """Whether zero may be the value."""
    return bool(mpf_sign(interval[0]) <= 0 <= mpf_sign(interval[1]))


def magnitude(interval: Interval) -> Any:
    """The largest absolute value in the interval, as a raw float."""
    low, high = interval
    low = mpf_neg(low) if mpf_sign(low) < 0 else low
    high = mpf_neg(high) if mpf_sign(high) < 0 else high
    return high if mpf_cmp(low, high) < 0 else low


def check_argument(interval: Interval) -> Interval:
    """Refuse an argument whose exponential or sine would be too large to compute.

    Raises:
        TooLargeError: Its absolute value may exceed ``MAX_ARGUMENT``.
    """
    if mpf_cmp(magnitude(interval), from_int(MAX_ARGUMENT)) > 0:
        raise TooLargeError
    return interval


def width_exponent(interval: Interval, prec: int) -> int:
    """An exponent e such that the interval is at most 2**e wide; very small for a point."""
    width = libmpi.mpi_delta(interval, prec)
    if mpf_sign(width) == 0:
        return -(1 << 60)
    _, _, exponent, bits = width
    return int(exponent + bits)


def size_exponent(interval: Interval) -> int:
    """An exponent e such that no absolute value in the interval exceeds 2**e; very small for zero."""
    largest = magnitude(interval)
    if mpf_sign(largest) == 0:
        return -(1 << 60)
    _, _, exponent, bits = largest
    return int(exponent + bits)


def floor_of(interval: Interval) -> int:
    """The floor, if it is the same over the whole interval.

    Raises:
        VagueError: It differs within the interval.
        TooLargeError: It has more than 4,000 bits.
    """
    if size_exponent(interval) > 4000:
        raise TooLargeError
    low, high = int(to_int(interval[0], "f")), int(to_int(interval[1], "f"))
    if low != high:
        raise VagueError
    return low


def middle(interval: Interval, prec: int) -> Fraction:
    """The middle of the interval, exactly.

    Raises:
        TooLargeError: Its exponent is too large to compute with.
    """
    if not -4000 < size_exponent(interval) < 4000:
        if mpf_sign(magnitude(interval)) == 0:
            return Fraction(0)
        raise TooLargeError
    top, bottom = to_rational(libmpi.mpi_mid(interval, prec))
    return Fraction(int(top), int(bottom))


def approximate(interval: Interval) -> float:
    """A float inside or near the interval; for sorting only."""
    return float(to_float(interval[0], rnd="n"))


__all__ = [
    "Complex",
    "Interval",
    "TooLargeError",
    "UndefinedError",
    "UnsupportedError",
    "VagueError",
    "Value",
    "libmpi",
]
