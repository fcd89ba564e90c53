"""The operations of the tree by name: how each is evaluated from its arguments."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

from rstar2_env.verification.read.nodes import Apply, Const, Matrix, Node, Num, symbols
from rstar2_env.verification.values import functions
from rstar2_env.verification.values.interval import (
    Complex,
    Interval,
    UndefinedError,
    UnsupportedError,
    Value,
    bounded,
    libmpi,
    to_complex,
)

if TYPE_CHECKING:
    from rstar2_env.verification.values.evaluate import Evaluator

_ANY_SIZE = 10**400
"""Largest whole number in a greatest common divisor, a remainder or a numeral."""


def _interval(value: object) -> Interval:
    return value  # type: ignore[return-value]  # mpmath ships no types; libmpi documents pairs


def _sum(evaluator: Evaluator, args: tuple[Node, ...]) -> Value:
    total = evaluator.value(args[0])
    for arg in args[1:]:
        total = evaluator.add(total, evaluator.value(arg))
    return total


def _product(evaluator: Evaluator, args: tuple[Node, ...]) -> Value:
    total = evaluator.value(args[0])
    for arg in args[1:]:
        total = evaluator.multiply(total, evaluator.value(arg))
    return total


def _negative(evaluator: Evaluator, args: tuple[Node, ...]) -> Value:
    return evaluator.negative(evaluator.value(args[0]))


def _quotient(evaluator: Evaluator, args: tuple[Node, ...]) -> Value:
    if len(args) != 2:
        raise UnsupportedError("ratio of three")
    return evaluator.divide(evaluator.value(args[0]), evaluator.value(args[1]))


def _power(evaluator: Evaluator, args: tuple[Node, ...]) -> Value:
    base, exponent = args
    if isinstance(base, Const) and base.name == "e" and not evaluator.over_complex:
        real = evaluator.value(exponent)
        if not isinstance(real, Fraction) or real.denominator != 1:
            return functions.exp(real, evaluator.prec)
    left, right = evaluator.value(base), evaluator.value(exponent)
    broken = isinstance(left, Fraction) and left < 0 and isinstance(right, Fraction) and right.denominator != 1
    if broken and symbols(exponent) and not evaluator.over_complex:
        raise UndefinedError  # (-8)^(1/3) is a real root; (-1)^n at n = 1/3 is no value of a sequence
    return evaluator.power(left, right)


def _root(evaluator: Evaluator, args: tuple[Node, ...]) -> Value:
    return evaluator.root(evaluator.value(args[0]), evaluator.value(args[1]))


def _absolute(evaluator: Evaluator, args: tuple[Node, ...]) -> Value:
    value = evaluator.value(args[0])
    if isinstance(value, Fraction):
        return abs(value)
    if isinstance(value, Complex):
        return _interval(libmpi.mpci_abs((value.re, value.im), evaluator.prec))
    return _interval(libmpi.mpi_abs(value, evaluator.prec))


def _factorial(evaluator: Evaluator, args: tuple[Node, ...]) -> Value:
    number = evaluator.whole(args[0])
    if number < 0:
        raise UndefinedError
    return bounded(Fraction(math.factorial(number)), evaluator.prec)


def _double_factorial(evaluator: Evaluator, args: tuple[Node, ...]) -> Value:
    number = evaluator.whole(args[0])
    if number < -1:
        raise UndefinedError
    return bounded(Fraction(math.prod(range(number, 0, -2))), evaluator.prec)


def _binomial(evaluator: Evaluator, args: tuple[Node, ...]) -> Value:
    top, bottom = evaluator.whole(args[0]), evaluator.whole(args[1])
    if top < 0:
        raise UndefinedError
    return bounded(Fraction(math.comb(top, bottom) if bottom >= 0 else 0), evaluator.prec)


def _degrees(evaluator: Evaluator, args: tuple[Node, ...]) -> Value:
    value = evaluator.value(args[0])
    if not evaluator.degrees:
        return value
    return evaluator.multiply(evaluator.multiply(value, Fraction(1, 180)), evaluator.value(Const("pi")))


def _logarithm(evaluator: Evaluator, args: tuple[Node, ...]) -> Value:
    top = evaluator.value(Apply("ln", args[:1]))
    if len(args) == 2:
        return evaluator.divide(top, evaluator.value(Apply("ln", args[1:])))
    if len(args) == 1 and evaluator.decimal_log:
        return evaluator.divide(top, functions.log(Fraction(10), evaluator.prec))
    return top


def _decimal_logarithm(evaluator: Evaluator, args: tuple[Node, ...]) -> Value:
    return _logarithm(evaluator, (args[0], Num(Fraction(10))))


def _floor(evaluator: Evaluator, args: tuple[Node, ...]) -> Value:
    return functions.floor(evaluator.value(args[0]))


def _ceiling(evaluator: Evaluator, args: tuple[Node, ...]) -> Value:
    return evaluator.negative(functions.floor(evaluator.negative(evaluator.value(args[0]))))


def _gcd(evaluator: Evaluator, args: tuple[Node, ...]) -> Value:
    return Fraction(math.gcd(*(evaluator.whole(arg, _ANY_SIZE) for arg in args)))


def _lcm(evaluator: Evaluator, args: tuple[Node, ...]) -> Value:
    return Fraction(math.lcm(*(evaluator.whole(arg, _ANY_SIZE) for arg in args)))


def _remainder(evaluator: Evaluator, args: tuple[Node, ...]) -> Value:
    divisor = evaluator.whole(args[1], _ANY_SIZE)
    if divisor <= 0:
        raise UndefinedError
    return Fraction(evaluator.whole(args[0], _ANY_SIZE) % divisor)


def _in_base(evaluator: Evaluator, args: tuple[Node, ...]) -> Value:
    digits, base = evaluator.whole(args[0], _ANY_SIZE), evaluator.whole(args[1])
    try:
        return Fraction(int(str(digits), base))
    except ValueError:
        raise UndefinedError from None


def _largest(evaluator: Evaluator, args: tuple[Node, ...]) -> Value:
    return functions.extreme([evaluator.value(arg) for arg in args], evaluator.prec, 1)


def _smallest(evaluator: Evaluator, args: tuple[Node, ...]) -> Value:
    return functions.extreme([evaluator.value(arg) for arg in args], evaluator.prec, -1)


def _part(which: str) -> Callable[[Evaluator, tuple[Node, ...]], Value]:
    def part(evaluator: Evaluator, args: tuple[Node, ...]) -> Value:
        re, im = to_complex(evaluator.value(args[0]), evaluator.prec)
        if which == "conj":
            return Complex(re, _interval(libmpi.mpi_neg(im)))
        return re if which == "Re" else im

    return part


def _determinant(evaluator: Evaluator, args: tuple[Node, ...]) -> Value:
    matrix = args[0]
    if not isinstance(matrix, Matrix) or not 1 <= len(matrix.rows) == len(matrix.rows[0]) <= 4:
        raise UnsupportedError("det")
    return _minor(evaluator, [[evaluator.value(entry) for entry in row] for row in matrix.rows])


def _minor(evaluator: Evaluator, rows: list[list[Value]]) -> Value:
    if len(rows) == 1:
        return rows[0][0]
    total: Value = Fraction(0)
    for column, entry in enumerate(rows[0]):
        part = evaluator.multiply(entry, _minor(evaluator, [row[:column] + row[column + 1 :] for row in rows[1:]]))
        total = evaluator.add(total, evaluator.negative(part) if column % 2 else part)
    return total


HANDLERS: dict[str, Callable[[Evaluator, tuple[Node, ...]], Value]] = {
    "add": _sum,
    "mixed": _sum,
    "mul": _product,
    "neg": _negative,
    "div": _quotient,
    "ratio": _quotient,
    "pow": _power,
    "root": _root,
    "abs": _absolute,
    "fact": _factorial,
    "fact2": _double_factorial,
    "binom": _binomial,
    "deg": _degrees,
    "log": _logarithm,
    "lg": _decimal_logarithm,
    "floor": _floor,
    "ceil": _ceiling,
    "gcd": _gcd,
    "lcm": _lcm,
    "mod": _remainder,
    "base": _in_base,
    "max": _largest,
    "min": _smallest,
    "Re": _part("Re"),
    "Im": _part("Im"),
    "conj": _part("conj"),
    "det": _determinant,
}
"""How to evaluate each operation but the elementary functions of one value (see ``functions``)."""
