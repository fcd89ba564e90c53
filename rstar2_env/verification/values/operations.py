"""The operations of the tree by name: how each is evaluated from its arguments."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

from flint import acb

from rstar2_env.verification.read.nodes import Apply, BracketGroup, Const, Matrix, Node, Num, Relation, symbols
from rstar2_env.verification.values import functions
from rstar2_env.verification.values.arithmetic import Arithmetic
from rstar2_env.verification.values.ball import (
    TooLargeError,
    UndefinedError,
    UnsupportedError,
    VagueError,
    Value,
    bounded,
    magnitude,
    sign,
    to_complex,
)

MAX_FACTORIAL = 5_000
"""Largest argument of a factorial or binomial."""

_ANY_SIZE = 10**400
"""Largest whole number in a greatest common divisor, a remainder or a numeral."""


class Operands(Arithmetic, ABC):
    """Arithmetic, and the evaluation of an operation's arguments, which are trees.

    Attributes:
        degrees: Whether a degree mark is a factor of pi/180; otherwise it is ignored.
        decimal_log: Whether ``log`` without a base is the decimal logarithm rather than the natural one.
    """

    degrees: bool
    decimal_log: bool

    @abstractmethod
    def value(self, node: Node) -> Value:
        """Evaluate a tree."""

    def whole(self, node: Node, limit: int = MAX_FACTORIAL) -> int:
        """Evaluate a tree whose value must be an integer of absolute value at most ``limit``."""
        value = self.value(node)
        if not isinstance(value, Fraction) or value.denominator != 1:
            raise UndefinedError
        if abs(value.numerator) > limit:
            raise TooLargeError
        return value.numerator


def _sum(operands: Operands, args: tuple[Node, ...]) -> Value:
    total = operands.value(args[0])
    for arg in args[1:]:
        total = operands.add(total, operands.value(arg))
    return total


def _product(operands: Operands, args: tuple[Node, ...]) -> Value:
    total = operands.value(args[0])
    for arg in args[1:]:
        total = operands.multiply(total, operands.value(arg))
    return total


def _negative(operands: Operands, args: tuple[Node, ...]) -> Value:
    return operands.negative(operands.value(args[0]))


def _quotient(operands: Operands, args: tuple[Node, ...]) -> Value:
    if len(args) != 2:
        raise UnsupportedError("ratio of three")
    return operands.divide(operands.value(args[0]), operands.value(args[1]))


def _power(operands: Operands, args: tuple[Node, ...]) -> Value:
    base, exponent = args
    if isinstance(base, Const) and base.name == "e" and not operands.over_complex:
        real = operands.value(exponent)
        if not isinstance(real, Fraction) or real.denominator != 1:
            return functions.exp(real)
    left, right = operands.value(base), operands.value(exponent)
    broken = isinstance(left, Fraction) and left < 0 and isinstance(right, Fraction) and right.denominator != 1
    if broken and symbols(exponent) and not operands.over_complex:
        raise UndefinedError  # (-8)^(1/3) is a real root; (-1)^n at n = 1/3 is not a value of a sequence
    return operands.power(left, right)


def _root(operands: Operands, args: tuple[Node, ...]) -> Value:
    return operands.root(operands.value(args[0]), operands.value(args[1]))


def _absolute(operands: Operands, args: tuple[Node, ...]) -> Value:
    return magnitude(operands.value(args[0]))


def _factorial(operands: Operands, args: tuple[Node, ...]) -> Value:
    number = operands.whole(args[0])
    if number < 0:
        raise UndefinedError
    return bounded(Fraction(math.factorial(number)))


def _double_factorial(operands: Operands, args: tuple[Node, ...]) -> Value:
    number = operands.whole(args[0])
    if number < -1:
        raise UndefinedError
    return bounded(Fraction(math.prod(range(number, 0, -2))))


def _binomial(operands: Operands, args: tuple[Node, ...]) -> Value:
    top, bottom = operands.whole(args[0]), operands.whole(args[1])
    if top < 0:
        raise UndefinedError
    return bounded(Fraction(math.comb(top, bottom) if bottom >= 0 else 0))


def _degrees(operands: Operands, args: tuple[Node, ...]) -> Value:
    value = operands.value(args[0])
    if not operands.degrees:
        return value
    return operands.multiply(operands.multiply(value, Fraction(1, 180)), operands.value(Const("pi")))


def _radians(operands: Operands, args: tuple[Node, ...]) -> Value:
    return operands.value(args[0])


def _by_cases(operands: Operands, args: tuple[Node, ...]) -> Value:
    for value, condition in zip(args[::2], args[1::2], strict=True):
        if _holds(operands, condition):
            return operands.value(value)
    raise UndefinedError


def _holds(operands: Operands, condition: Node) -> bool:
    """Whether a condition of a case holds at this point."""
    match condition:
        case Const(name="else"):
            return True
        case BracketGroup(close=joint, items=items):
            results = [_holds(operands, item) for item in items]
            return any(results) if joint == "or" else all(results)
        case Relation(ops=ops, sides=sides):
            values = [operands.value(side) for side in sides]
            return all(_stands(operands, op, *pair) for op, pair in zip(ops, pairwise(values), strict=True))
        case _:
            raise UnsupportedError("condition")


def _stands(operands: Operands, op: str, left: Value, right: Value) -> bool:
    difference = operands.add(left, operands.negative(right))
    if isinstance(difference, acb):
        raise UndefinedError
    direction = sign(difference)
    if direction is None:
        raise VagueError
    wanted = {"=": (0,), "!=": (-1, 1), "<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (0, 1)}.get(op)
    if wanted is None:
        raise UnsupportedError(op)
    return direction in wanted


def _logarithm(operands: Operands, args: tuple[Node, ...]) -> Value:
    top = operands.value(Apply("ln", args[:1]))
    if len(args) == 2:
        return operands.divide(top, operands.value(Apply("ln", args[1:])))
    if len(args) == 1 and operands.decimal_log:
        return operands.divide(top, functions.REAL["ln"](Fraction(10)))
    return top


def _decimal_logarithm(operands: Operands, args: tuple[Node, ...]) -> Value:
    return _logarithm(operands, (args[0], Num(Fraction(10))))


def _floor(operands: Operands, args: tuple[Node, ...]) -> Value:
    return functions.floor(operands.value(args[0]))


def _ceiling(operands: Operands, args: tuple[Node, ...]) -> Value:
    return operands.negative(functions.floor(operands.negative(operands.value(args[0]))))


def _gcd(operands: Operands, args: tuple[Node, ...]) -> Value:
    return Fraction(math.gcd(*(operands.whole(arg, _ANY_SIZE) for arg in args)))


def _lcm(operands: Operands, args: tuple[Node, ...]) -> Value:
    return Fraction(math.lcm(*(operands.whole(arg, _ANY_SIZE) for arg in args)))


def _remainder(operands: Operands, args: tuple[Node, ...]) -> Value:
    divisor = operands.whole(args[1], _ANY_SIZE)
    if divisor <= 0:
        raise UndefinedError
    return Fraction(operands.whole(args[0], _ANY_SIZE) % divisor)


def _in_base(operands: Operands, args: tuple[Node, ...]) -> Value:
    digits, base = operands.whole(args[0], _ANY_SIZE), operands.whole(args[1])
    try:
        return Fraction(int(str(digits), base))
    except ValueError:
        raise UndefinedError from None


def _largest(operands: Operands, args: tuple[Node, ...]) -> Value:
    return functions.extreme([operands.value(arg) for arg in args], 1)


def _smallest(operands: Operands, args: tuple[Node, ...]) -> Value:
    return functions.extreme([operands.value(arg) for arg in args], -1)


def _part(take: Callable[[acb], Value]) -> Callable[[Operands, tuple[Node, ...]], Value]:
    return lambda operands, args: take(to_complex(operands.value(args[0])))


def _determinant(operands: Operands, args: tuple[Node, ...]) -> Value:
    matrix = args[0]
    if not isinstance(matrix, Matrix) or not 1 <= len(matrix.rows) == len(matrix.rows[0]) <= 4:
        raise UnsupportedError("det")
    return _minor(operands, [[operands.value(entry) for entry in row] for row in matrix.rows])


def _minor(operands: Operands, rows: list[list[Value]]) -> Value:
    if len(rows) == 1:
        return rows[0][0]
    total: Value = Fraction(0)
    for column, entry in enumerate(rows[0]):
        part = operands.multiply(entry, _minor(operands, [row[:column] + row[column + 1 :] for row in rows[1:]]))
        total = operands.add(total, operands.negative(part) if column % 2 else part)
    return total


HANDLERS: dict[str, Callable[[Operands, tuple[Node, ...]], Value]] = {
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
    "rad": _radians,
    "cases": _by_cases,
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
    "Re": _part(lambda value: value.real),
    "Im": _part(lambda value: value.imag),
    "conj": _part(acb.conjugate),
    "det": _determinant,
}
"""How to evaluate each operation except the elementary functions of one value (see ``functions``)."""
