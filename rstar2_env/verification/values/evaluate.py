"""The value of an expression at a point, exactly where it is rational, else as an interval that contains it.

Covered: arithmetic, powers and roots, elementary functions, factorials and binomials, finite sums and products, small
determinants, over the reals (odd roots of negative numbers are real) or the complex numbers (principal values). Not
covered: integrals, limits, infinite sums, unknown functions: ``UnsupportedError``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from rstar2_env.verification.read.nodes import Apply, Big, Const, Node, Num, Sym
from rstar2_env.verification.values import functions
from rstar2_env.verification.values.interval import (
    ONE_INTERVAL,
    ZERO_INTERVAL,
    Complex,
    Interval,
    TooLargeError,
    UndefinedError,
    UnsupportedError,
    VagueError,
    Value,
    bounded,
    contains_zero,
    libmpi,
    sign,
    to_complex,
    to_interval,
)
from rstar2_env.verification.values.operations import HANDLERS

MAX_TERMS = 400
"""Longest finite sum or product that is added up."""

MAX_FACTORIAL = 5_000
"""Largest argument of a factorial or binomial."""

MAX_STEPS = 60_000
"""Most nodes that one evaluation visits, sums unrolled."""


class Evaluator:
    """Evaluates trees at one point.

    Args:
        point: Values of the variables.
        prec: Bits of precision of intervals.
        over_complex: Work over the complex numbers.
        degrees: What a degree is worth: pi/180, or 1 to drop the mark.
        decimal_log: Read ``log`` without a base as the decimal logarithm rather than the natural one.
    """

    def __init__(
        self,
        point: Mapping[str, Fraction],
        prec: int,
        *,
        over_complex: bool = False,
        degrees: bool = True,
        decimal_log: bool = False,
    ) -> None:
        self.prec = prec
        self.over_complex = over_complex
        self.degrees = degrees
        self.decimal_log = decimal_log
        self._point = dict(point)
        self._steps = 0

    def value(self, node: Node) -> Value:
        """Evaluate a tree.

        Raises:
            UndefinedError: There is no value at this point.
            VagueError: More precision would be needed to say.
            TooLargeError: A value on the way is out of proportion.
            UnsupportedError: The tree holds something without a value.
        """
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise TooLargeError
        match node:
            case Num(value=value):
                return value
            case Sym(name=name):
                if name in self._point:
                    return self._point[name]
                raise UnsupportedError(name)
            case Const(name=name):
                return self._constant(name)
            case Apply(op=op, args=args):
                return self._apply(op, args)
            case Big():
                return self._big(node)
            case _:
                raise UnsupportedError(type(node).__name__)

    def _constant(self, name: str) -> Value:
        if name == "pi":
            return self._pi()
        if name == "e":
            return _interval(libmpi.mpi_exp(ONE_INTERVAL, self.prec))
        if name == "i":
            if not self.over_complex:
                raise UndefinedError
            return Complex(ZERO_INTERVAL, ONE_INTERVAL)
        raise UnsupportedError(name)

    def _pi(self) -> Interval:
        return _interval(libmpi.mpi_pi(self.prec))

    def _apply(self, op: str, args: tuple[Node, ...]) -> Value:
        handler = HANDLERS.get(op)
        if handler is not None:
            return handler(self, args)
        if op in functions.REAL:
            return self._function(op, args)
        raise UnsupportedError(op)

    def add(self, left: Value, right: Value) -> Value:
        """Sum of two values."""
        if isinstance(left, Fraction) and isinstance(right, Fraction):
            return bounded(left + right, self.prec)
        if isinstance(left, Complex) or isinstance(right, Complex):
            return self._complex(libmpi.mpci_add(to_complex(left, self.prec), to_complex(right, self.prec), self.prec))
        return _interval(libmpi.mpi_add(to_interval(left, self.prec), to_interval(right, self.prec), self.prec))

    def negative(self, value: Value) -> Value:
        """The value with its sign changed."""
        if isinstance(value, Fraction):
            return -value
        if isinstance(value, Complex):
            return self._complex(libmpi.mpci_neg((value.re, value.im)))
        return _interval(libmpi.mpi_neg(value, self.prec))

    def multiply(self, left: Value, right: Value) -> Value:
        """Product of two values."""
        if isinstance(left, Fraction) and isinstance(right, Fraction):
            return bounded(left * right, self.prec)
        if isinstance(left, Complex) or isinstance(right, Complex):
            return self._complex(libmpi.mpci_mul(to_complex(left, self.prec), to_complex(right, self.prec), self.prec))
        return _interval(libmpi.mpi_mul(to_interval(left, self.prec), to_interval(right, self.prec), self.prec))

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
        return _interval(libmpi.mpi_div(to_interval(left, self.prec), under_real, self.prec))

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
            return self.divide(Fraction(1), _interval(libmpi.mpi_pow_int(real, -exponent, self.prec)))
        return _interval(libmpi.mpi_pow_int(real, exponent, self.prec))

    def _root_power(self, base: Value, exponent: Fraction) -> Value:
        """A power with a fraction for an exponent."""
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
            return _interval(libmpi.mpi_sqrt(real, self.prec))
        return functions.exp(self.multiply(functions.log(real, self.prec), exponent), self.prec)

    def _complex_power(self, base: Value, exponent: Value) -> Value:
        left = to_complex(base, self.prec)
        if contains_zero(left[0]) and contains_zero(left[1]):
            raise VagueError
        logarithm = functions.complex_log(left, self.prec)
        product = libmpi.mpci_mul(logarithm, to_complex(exponent, self.prec), self.prec)
        return functions.complex_exp(product, self.prec)

    def root(self, value: Value, index: Value) -> Value:
        """The root of that index. Odd roots of negative reals are real, over the complex numbers too."""
        if not isinstance(index, Fraction) or index == 0:
            return self.power(value, self.divide(Fraction(1), index))
        if index.denominator == 1 and index.numerator % 2 and not isinstance(value, Complex):
            real = value if isinstance(value, Fraction) else sign(value)
            if real is None:
                raise VagueError
            if real < 0:
                return self.negative(self.root(self.negative(value), index))
        return self._root_power(value, 1 / index) if index != 1 else value

    def _function(self, op: str, args: tuple[Node, ...]) -> Value:
        if len(args) != 1:
            raise UnsupportedError(op)
        argument = self.value(args[0])
        if isinstance(argument, Complex):
            return functions.over_complex(op, argument, self.prec)
        try:
            return functions.REAL[op](argument, self.prec)
        except UndefinedError:
            if not self.over_complex:
                raise
            re, im = to_complex(argument, self.prec)
            return functions.over_complex(op, Complex(re, im), self.prec)

    def whole(self, node: Node, limit: int = MAX_FACTORIAL) -> int:
        """Evaluate what must be an integer of at most ``limit`` in absolute value."""
        value = self.value(node)
        if not isinstance(value, Fraction) or value.denominator != 1:
            raise UndefinedError
        if abs(value.numerator) > limit:
            raise TooLargeError
        return value.numerator

    def _big(self, node: Big) -> Value:
        if node.kind not in ("sum", "prod") or node.lower is None or node.upper is None or not node.variable:
            raise UnsupportedError(node.kind)
        low, high = self.value(node.lower), self.value(node.upper)
        if not isinstance(low, Fraction) or not isinstance(high, Fraction):
            raise UnsupportedError(node.kind)
        if low.denominator != 1 or high.denominator != 1:
            raise UndefinedError
        if high - low > MAX_TERMS:
            raise TooLargeError
        saved = self._point.get(node.variable)
        total: Value = Fraction(0 if node.kind == "sum" else 1)
        try:
            for index in range(low.numerator, high.numerator + 1):
                self._point[node.variable] = Fraction(index)
                term = self.value(node.body)
                total = self.add(total, term) if node.kind == "sum" else self.multiply(total, term)
        finally:
            self._point.pop(node.variable, None)
            if saved is not None:
                self._point[node.variable] = saved
        return total

    @staticmethod
    def _complex(pair: tuple[Interval, Interval]) -> Complex:
        return Complex(pair[0], pair[1])


def _interval(value: object) -> Interval:
    """Give mpmath's untyped result its type."""
    return value  # type: ignore[return-value]  # a pair of raw floats, as libmpi documents


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
