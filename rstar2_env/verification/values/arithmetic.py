"""Sums, products, powers and roots of values: exact if both are rational, otherwise over intervals.

Over the reals odd roots of negative numbers are real; over the complex numbers powers are principal values. Not
covered: trees (``evaluate``), and elementary functions (``functions``).
"""

from __future__ import annotations

import math
from fractions import Fraction

from rstar2_env.verification.values import functions
from rstar2_env.verification.values.interval import (
    Complex,
    Interval,
    TooLargeError,
    UndefinedError,
    VagueError,
    Value,
    bounded,
    contains_zero,
    libmpi,
    sign,
    to_complex,
    to_interval,
    typed,
)


class Arithmetic:
    """Calculates with values.

    Args:
        prec: Bits of precision of intervals.
        over_complex: Work over the complex numbers.
    """

    def __init__(self, prec: int, *, over_complex: bool = False) -> None:
        self.prec = prec
        self.over_complex = over_complex

    def add(self, left: Value, right: Value) -> Value:
        """Sum of two values."""
        if isinstance(left, Fraction) and isinstance(right, Fraction):
            return bounded(left + right, self.prec)
        if isinstance(left, Complex) or isinstance(right, Complex):
            return self._complex(libmpi.mpci_add(to_complex(left, self.prec), to_complex(right, self.prec), self.prec))
        return typed(libmpi.mpi_add(to_interval(left, self.prec), to_interval(right, self.prec), self.prec))

    def negative(self, value: Value) -> Value:
        """The value with its sign changed."""
        if isinstance(value, Fraction):
            return -value
        if isinstance(value, Complex):
            return self._complex(libmpi.mpci_neg((value.re, value.im)))
        return typed(libmpi.mpi_neg(value, self.prec))

    def multiply(self, left: Value, right: Value) -> Value:
        """Product of two values."""
        if isinstance(left, Fraction) and isinstance(right, Fraction):
            return bounded(left * right, self.prec)
        if isinstance(left, Complex) or isinstance(right, Complex):
            return self._complex(libmpi.mpci_mul(to_complex(left, self.prec), to_complex(right, self.prec), self.prec))
        return typed(libmpi.mpi_mul(to_interval(left, self.prec), to_interval(right, self.prec), self.prec))

    def divide(self, left: Value, right: Value) -> Value:
        """Quotient of two values."""
        if isinstance(right, Fraction) and right == 0:
            raise UndefinedError
        if isinstance(left, Fraction) and isinstance(right, Fraction):
            return bounded(left / right, self.prec)
        if isinstance(left, Complex) or isinstance(right, Complex):
            under = to_complex(right, self.prec)
            if contains_zero(under[0]) and contains_zero(under[1]):
                raise VagueError
            return self._complex(libmpi.mpci_div(to_complex(left, self.prec), under, self.prec))
        under_real = to_interval(right, self.prec)
        if contains_zero(under_real):
            raise VagueError
        return typed(libmpi.mpi_div(to_interval(left, self.prec), under_real, self.prec))

    def power(self, base: Value, exponent: Value) -> Value:
        """Base to the exponent."""
        if isinstance(exponent, Fraction):
            if exponent.denominator == 1:
                return self._whole_power(base, exponent.numerator)
            return self._root_power(base, exponent)
        if isinstance(base, Fraction) and base == 0:
            raise UndefinedError
        if isinstance(base, Complex) or isinstance(exponent, Complex):
            return self._complex_power(base, exponent)
        real = to_interval(base, self.prec)
        direction = sign(real)
        if direction is None:
            raise VagueError
        if direction < 0:
            if self.over_complex:
                return self._complex_power(base, exponent)
            raise UndefinedError
        if direction == 0:
            raise UndefinedError
        return functions.exp(self.multiply(functions.log(real, self.prec), exponent), self.prec)

    def _whole_power(self, base: Value, exponent: int) -> Value:
        if exponent == 0 and not isinstance(base, Fraction):
            return Fraction(1)
        if isinstance(base, Fraction):
            if base == 0 and exponent <= 0:
                raise UndefinedError  # 0^0 as well
            bits = max(base.numerator.bit_length(), base.denominator.bit_length())
            if bits * abs(exponent) <= 20_000 or base in (0, 1, -1):
                return bounded(base**exponent, self.prec)
        if abs(exponent) > 1 << 40:
            raise TooLargeError
        if isinstance(base, Complex):
            return self._complex(libmpi.mpci_pow_int((base.re, base.im), exponent, self.prec))
        real = to_interval(base, self.prec)
        if exponent < 0:
            return self.divide(Fraction(1), typed(libmpi.mpi_pow_int(real, -exponent, self.prec)))
        return typed(libmpi.mpi_pow_int(real, exponent, self.prec))

    def _root_power(self, base: Value, exponent: Fraction) -> Value:
        """A power with a fractional exponent."""
        if isinstance(base, Complex):
            return self._complex_power(base, exponent)
        if isinstance(base, Fraction):
            if base == 0:
                if exponent > 0:
                    return Fraction(0)
                raise UndefinedError
            direction: int | None = 1 if base > 0 else -1
        else:
            direction = sign(base)
        if direction is None:
            raise VagueError
        if direction == 0:
            raise UndefinedError
        if direction < 0:
            if self.over_complex:
                return self._complex_power(base, exponent)
            if exponent.denominator % 2 == 0:
                raise UndefinedError
            positive = self._positive_power(self.negative(base), exponent)
            return self.negative(positive) if exponent.numerator % 2 else positive
        return self._positive_power(base, exponent)

    def _positive_power(self, base: Value, exponent: Fraction) -> Value:
        if isinstance(base, Fraction) and exponent.denominator <= 64:
            top = _exact_root(base.numerator, exponent.denominator)
            bottom = _exact_root(base.denominator, exponent.denominator)
            if top is not None and bottom is not None:
                return self._whole_power(Fraction(top, bottom), exponent.numerator)
        real = to_interval(base, self.prec)  # type: ignore[arg-type]  # only real values come here
        if exponent == Fraction(1, 2):
            return typed(libmpi.mpi_sqrt(real, self.prec))
        return functions.exp(self.multiply(functions.log(real, self.prec), exponent), self.prec)

    def _complex_power(self, base: Value, exponent: Value) -> Value:
        left = to_complex(base, self.prec)
        if contains_zero(left[0]) and contains_zero(left[1]):
            raise VagueError
        logarithm = functions.complex_log(left, self.prec)
        product = libmpi.mpci_mul(logarithm, to_complex(exponent, self.prec), self.prec)
        return functions.complex_exp(product, self.prec)

    def root(self, value: Value, index: Value) -> Value:
        """The ``index``-th root of a value. Odd roots of negative reals are real, over the complex numbers too."""
        if not isinstance(index, Fraction) or index == 0:
            return self.power(value, self.divide(Fraction(1), index))
        if index.denominator == 1 and index.numerator % 2 and not isinstance(value, Complex):
            real = value if isinstance(value, Fraction) else sign(value)
            if real is None:
                raise VagueError
            if real < 0:
                return self.negative(self.root(self.negative(value), index))
        return self._root_power(value, 1 / index) if index != 1 else value

    @staticmethod
    def _complex(pair: tuple[Interval, Interval]) -> Complex:
        return Complex(pair[0], pair[1])


def _exact_root(number: int, index: int) -> int | None:
    """The root of a non-negative integer, if it is an integer."""
    if number < 2:
        return number
    if index == 2:
        root = math.isqrt(number)
        return root if root * root == number else None
    if number.bit_length() > 2_000:
        return None
    low, high = 1, 1 << -(-number.bit_length() // index)
    while low <= high:
        guess = (low + high) // 2
        power = guess**index
        if power == number:
            return guess
        low, high = (guess + 1, high) if power < number else (low, guess - 1)
    return None
