"""``Arithmetic``: sums, products, powers and roots, exact if both values are rational, otherwise as balls (intervals).

Over the reals, odd roots of negative numbers are real. Over the complex numbers, powers are principal values. Not
covered: trees (``evaluate``), and elementary functions (``functions``).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from flint import acb, arb, fmpz

from rstar2_env.verification.values import functions
from rstar2_env.verification.values.ball import (
    Real,
    TooLargeError,
    UndefinedError,
    VagueError,
    Value,
    bounded,
    contains_zero,
    known,
    magnitude,
    to_ball,
    to_complex,
)


class Arithmetic:
    """Adds, multiplies and divides values, and takes powers and roots.

    Args:
        over_complex: Whether to compute over the complex numbers, or over the reals.
    """

    def __init__(self, *, over_complex: bool = False) -> None:
        self.over_complex = over_complex

    def add(self, left: Value, right: Value) -> Value:
        """Return the sum of two values."""
        return _both(operator.add, left, right)

    def multiply(self, left: Value, right: Value) -> Value:
        """Return the product of two values."""
        return _both(operator.mul, left, right)

    def divide(self, left: Value, right: Value) -> Value:
        """Return the quotient of two values."""
        if right == 0:
            raise UndefinedError
        return _both(operator.truediv, left, right)

    def power(self, base: Value, exponent: Value) -> Value:
        """Return ``base`` to the power ``exponent``."""
        if isinstance(exponent, Fraction):
            if exponent.denominator == 1:
                return self._whole_power(base, exponent.numerator)
            return self._root_power(base, exponent)
        if isinstance(base, acb) or isinstance(exponent, acb):
            if base == 0:
                raise UndefinedError
            return self._complex_power(base, exponent)
        return self._real_power(base, exponent, odd=False)

    def _whole_power(self, base: Value, exponent: int) -> Value:
        if exponent == 0 and not isinstance(base, Fraction):
            return Fraction(1)
        if isinstance(base, Fraction):
            if base == 0 and exponent <= 0:
                raise UndefinedError  # 0^0 as well
            bits = max(base.numerator.bit_length(), base.denominator.bit_length())
            if bits * abs(exponent) <= 20_000 or base in (0, 1, -1):
                return bounded(base**exponent)
            base = to_ball(base)
        if abs(exponent) > 1 << 40:
            raise TooLargeError
        if contains_zero(base):
            if exponent < 0:
                raise VagueError
            radius = arb(0, to_ball(magnitude(base)).abs_upper() ** exponent)  # arb has no power of a ball around zero
            return acb(radius, radius) if isinstance(base, acb) else radius
        return known(base**exponent)  # type: ignore[type-var]  # one kind or the other

    def _root_power(self, base: Value, exponent: Fraction) -> Value:
        """Return a power with a fractional exponent."""
        if isinstance(base, acb):
            return self._complex_power(base, exponent)
        if base == 0 and isinstance(base, Fraction) and exponent > 0:
            return Fraction(0)
        return self._real_power(base, exponent, odd=bool(exponent.denominator % 2))

    def _real_power(self, base: Real, exponent: Real, *, odd: bool) -> Value:
        """Return a power of a real number; if ``odd`` is true, the root of a negative number is real."""
        direction = functions.certain_sign(base)
        if direction == 0:
            raise UndefinedError
        if direction > 0:
            return self._positive_power(base, exponent)
        if self.over_complex:
            return self._complex_power(base, exponent)
        if not odd:
            raise UndefinedError
        positive = self._positive_power(-base, exponent)
        return -positive if isinstance(exponent, Fraction) and exponent.numerator % 2 else positive

    def _positive_power(self, base: Real, exponent: Real) -> Value:
        if isinstance(exponent, Fraction):
            if isinstance(base, Fraction) and exponent.denominator <= 64:
                top = _exact_root(base.numerator, exponent.denominator)
                bottom = _exact_root(base.denominator, exponent.denominator)
                if top is not None and bottom is not None:
                    return self._whole_power(Fraction(top, bottom), exponent.numerator)
            if exponent == Fraction(1, 2):
                return known(to_ball(base).sqrt())
        return functions.exp(self.multiply(functions.REAL["ln"](base), exponent))

    def _complex_power(self, base: Value, exponent: Value) -> Value:
        return functions.exp(functions.complex_log(to_complex(base)) * to_complex(exponent))

    def root(self, value: Value, index: Value) -> Value:
        """Return the root of ``value`` with the given index. An odd root of a negative real number is always real."""
        if not isinstance(index, Fraction) or index == 0:
            return self.power(value, self.divide(Fraction(1), index))
        odd = index.denominator == 1 and index.numerator % 2 == 1
        if odd and not isinstance(value, acb) and functions.certain_sign(value) < 0:
            return -self.root(-value, index)
        return self._root_power(value, 1 / index) if index != 1 else value


def _both(operation: Callable[[Any, Any], Any], left: Value, right: Value) -> Value:
    """Apply an operation to two values; if they differ in kind (exact, real, complex), convert one of them."""
    if isinstance(left, Fraction) and isinstance(right, Fraction):
        return bounded(operation(left, right))
    if isinstance(left, acb) or isinstance(right, acb):
        pair: acb = operation(to_complex(left), to_complex(right))
        return known(pair)
    ball: arb = operation(to_ball(left), to_ball(right))
    return known(ball)


def _exact_root(number: int, index: int) -> int | None:
    """Return the root of a non-negative integer if it is an integer; else ``None``."""
    if number < 2:
        return number
    if index == 2:
        root = math.isqrt(number)
        return root if root * root == number else None
    if number.bit_length() > 2_000:
        return None
    root = int(fmpz(number).root(index))
    return root if root**index == number else None
