"""``Evaluator``: evaluates an expression at a point: exactly if the value is rational, otherwise as a ball (interval).

Covered: arithmetic, powers and roots, elementary functions, factorials and binomials, finite sums and products, small
determinants, over the reals (odd roots of negative numbers are real) or the complex numbers (principal values). Not
covered: integrals, limits, infinite sums, unknown functions: ``UnsupportedError``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import pairwise

from flint import acb, arb, ctx

from rstar2_env.verification.read.nodes import (
    ONE,
    Apply,
    Big,
    BracketGroup,
    Const,
    Matrix,
    Node,
    Num,
    Relation,
    Sym,
    symbols,
)
from rstar2_env.verification.values import ball
from rstar2_env.verification.values.ball import Value

MAX_TERMS = 400
"""Number of terms of the longest finite sum or product that is evaluated."""

MAX_STEPS = 60_000
"""Maximum number of nodes that one evaluation visits, counting each term of a sum."""

MAX_FACTORIAL = 5_000
"""Largest argument of a factorial or binomial coefficient."""

_ANY_SIZE = 10**400
"""Largest absolute value of an argument of ``gcd``, ``lcm`` and ``mod``. The digits of a number with a base
(``204_5``), read as a decimal number, have the same limit."""


@dataclass(frozen=True, slots=True)
class Notation:
    """How to evaluate notation that can have several meanings.

    Attributes:
        over_complex: Whether to compute over the complex numbers, or over the reals.
        degrees: Whether a degree mark means a factor of pi/180; ``False`` ignores the mark.
        decimal_log: Whether ``log`` without a base is the decimal logarithm rather than the natural one.
    """

    over_complex: bool = False
    degrees: bool = True
    decimal_log: bool = False


class Evaluator:
    """Evaluates trees at one point, and computes sums, products, powers and roots of values.

    Args:
        point: Values of the variables.
        prec: Precision of balls, in bits.
        notation: How to evaluate notation that can have several meanings.
    """

    def __init__(self, point: Mapping[str, Fraction], prec: int, notation: Notation = Notation()) -> None:
        self.over_complex = notation.over_complex
        self.prec = prec
        self.notation = notation
        self._point = dict(point)
        self._steps = 0

    def value(self, node: Node) -> Value:
        """Return the value of a tree.

        Raises:
            UndefinedError: The tree has no value at this point.
            VagueError: A higher precision is needed.
            TooLargeError: An intermediate value is too large to compute with.
            UnsupportedError: The tree contains something that this package cannot evaluate.
        """
        ctx.prec = self.prec  # the context is shared by the process, so another evaluator may have changed it
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise ball.TooLargeError
        match node:
            case Num(value=value):
                return value
            case Sym(name=name) if name in self._point:
                return self._point[name]
            case Const(name="pi"):
                return arb.pi()
            case Const(name="e"):
                return arb.const_e()
            case Const(name="i"):
                if not self.over_complex:
                    raise ball.UndefinedError
                return acb(0, 1)
            case Apply(op=op, args=args):
                return self._apply(op, args)
            case Big():
                return self._big(node)
            case _:
                raise ball.UnsupportedError(type(node).__name__)

    def whole(self, node: Node, limit: int = MAX_FACTORIAL, *, least: int | None = None) -> int:
        """Return the value of a tree, which must be an integer of absolute value at most ``limit``.

        Raises:
            UndefinedError: The value is not an integer, or is below ``least``.
            TooLargeError: Its absolute value is above ``limit``.
        """
        value = self.value(node)
        if not isinstance(value, Fraction) or value.denominator != 1:
            raise ball.UndefinedError
        if abs(value.numerator) > limit:
            raise ball.TooLargeError
        if least is not None and value < least:
            raise ball.UndefinedError
        return value.numerator

    def _apply(self, op: str, args: tuple[Node, ...]) -> Value:
        if op in OPERATIONS:
            return OPERATIONS[op](self, args)
        if op not in ball.REAL or len(args) != 1:
            raise ball.UnsupportedError(op)
        argument = self.value(args[0])
        if isinstance(argument, acb):
            return ball.over_complex(op, argument)
        try:
            return ball.REAL[op](argument)
        except ball.UndefinedError:
            if not self.over_complex:
                raise
            return ball.over_complex(op, ball.to_complex(argument))

    def _big(self, node: Big) -> Value:
        if node.kind not in ("sum", "prod") or node.lower is None or node.upper is None or not node.variable:
            raise ball.UnsupportedError(node.kind)
        low, high = self.value(node.lower), self.value(node.upper)
        if not isinstance(low, Fraction) or not isinstance(high, Fraction):
            raise ball.UnsupportedError(node.kind)
        if low.denominator != 1 or high.denominator != 1:
            raise ball.UndefinedError
        if high - low > MAX_TERMS:
            raise ball.TooLargeError
        outside = self._point
        combine = self.add if node.kind == "sum" else self.multiply
        total: Value = Fraction(0 if node.kind == "sum" else 1)
        try:
            for index in range(low.numerator, high.numerator + 1):
                self._point = {**outside, node.variable: Fraction(index)}
                total = combine(total, self.value(node.body))
        finally:
            self._point = outside
        return total

    def add(self, left: Value, right: Value) -> Value:
        """Return the sum of two values."""
        return ball.combined(operator.add, left, right)

    def multiply(self, left: Value, right: Value) -> Value:
        """Return the product of two values."""
        return ball.combined(operator.mul, left, right)

    def divide(self, left: Value, right: Value) -> Value:
        """Return the quotient of two values."""
        if right == 0:
            raise ball.UndefinedError
        return ball.combined(operator.truediv, left, right)

    def power(self, base: Value, exponent: Value) -> Value:
        """Return ``base`` to the power ``exponent``."""
        if isinstance(exponent, Fraction):
            if exponent.denominator == 1:
                return self._whole_power(base, exponent.numerator)
            if base == 0 and isinstance(base, Fraction) and exponent > 0:
                return Fraction(0)
        elif base == 0 and (isinstance(base, acb) or isinstance(exponent, acb)):
            raise ball.UndefinedError
        if isinstance(base, acb) or isinstance(exponent, acb):
            return self._complex_power(base, exponent)
        return self._real_power(base, exponent)

    def _whole_power(self, base: Value, exponent: int) -> Value:
        if exponent == 0 and not isinstance(base, Fraction):
            return Fraction(1)
        if isinstance(base, Fraction):
            if base == 0 and exponent <= 0:
                raise ball.UndefinedError  # 0^0 as well
            bits = max(base.numerator.bit_length(), base.denominator.bit_length())
            if bits * abs(exponent) <= 20_000 or base in (0, 1, -1):
                return ball.bounded(base**exponent)
            base = ball.to_ball(base)
        if abs(exponent) > 1 << 40:
            raise ball.TooLargeError
        if ball.contains_zero(base):
            if exponent < 0:
                raise ball.VagueError
            # arb has no power of a ball around zero
            radius = arb(0, ball.to_ball(ball.magnitude(base)).abs_upper() ** exponent)
            return acb(radius, radius) if isinstance(base, acb) else radius
        return ball.known(base**exponent)  # type: ignore[type-var]  # one kind or the other

    def _real_power(self, base: ball.Real, exponent: ball.Real) -> Value:
        """Return ``base`` to an exponent that is not a whole number; an odd root of a negative number is real."""
        direction = ball.certain_sign(base)
        if direction == 0:
            raise ball.UndefinedError
        if direction > 0:
            return self._positive_power(base, exponent)
        if self.over_complex:
            return self._complex_power(base, exponent)
        if not isinstance(exponent, Fraction) or exponent.denominator % 2 == 0:
            raise ball.UndefinedError
        positive = self._positive_power(-base, exponent)
        return -positive if exponent.numerator % 2 else positive

    def _positive_power(self, base: ball.Real, exponent: ball.Real) -> Value:
        if isinstance(exponent, Fraction):
            if isinstance(base, Fraction) and exponent.denominator <= 64:
                top = ball.exact_root(base.numerator, exponent.denominator)
                bottom = ball.exact_root(base.denominator, exponent.denominator)
                if top is not None and bottom is not None:
                    return self._whole_power(Fraction(top, bottom), exponent.numerator)
            if exponent == Fraction(1, 2):
                return ball.known(ball.to_ball(base).sqrt())
        return ball.exp(self.multiply(ball.REAL["ln"](base), exponent))

    def _complex_power(self, base: Value, exponent: Value) -> Value:
        return ball.exp(ball.complex_log(ball.to_complex(base)) * ball.to_complex(exponent))

    def root(self, value: Value, index: Value) -> Value:
        """Return the root of ``value`` with the given index. An odd root of a negative real number is always real."""
        odd = isinstance(index, Fraction) and index.denominator == 1 and index.numerator % 2 == 1
        if odd and not isinstance(value, acb) and ball.certain_sign(value) < 0:
            return -self.root(-value, index)
        return self.power(value, self.divide(Fraction(1), index))


def _quotient(calc: Evaluator, args: tuple[Node, ...]) -> Value:
    if len(args) != 2:
        raise ball.UnsupportedError("ratio of three")
    return calc.divide(calc.value(args[0]), calc.value(args[1]))


def _power(calc: Evaluator, args: tuple[Node, ...]) -> Value:
    base, exponent = args
    if isinstance(base, Const) and base.name == "e" and not calc.over_complex:
        real = calc.value(exponent)
        if not isinstance(real, Fraction) or real.denominator != 1:
            return ball.exp(real)
    left, right = calc.value(base), calc.value(exponent)
    broken = isinstance(left, Fraction) and left < 0 and isinstance(right, Fraction) and right.denominator != 1
    if broken and symbols(exponent) and not calc.over_complex:
        raise ball.UndefinedError  # (-8)^(1/3) is a real root; (-1)^n at n = 1/3 is not a value of a sequence
    return calc.power(left, right)


def _binomial(calc: Evaluator, args: tuple[Node, ...]) -> Value:
    top, bottom = calc.whole(args[0], least=0), calc.whole(args[1])
    return ball.bounded(Fraction(math.comb(top, bottom) if bottom >= 0 else 0))


def _degrees(calc: Evaluator, args: tuple[Node, ...]) -> Value:
    factors = (Num(Fraction(1, 180)), Const("pi")) if calc.notation.degrees else ()
    return calc.value(Apply("mul", (*args, *factors)))


def _by_cases(calc: Evaluator, args: tuple[Node, ...]) -> Value:
    for value, condition in zip(args[::2], args[1::2], strict=True):
        if _holds(calc, condition):
            return calc.value(value)
    raise ball.UndefinedError


def _holds(calc: Evaluator, condition: Node) -> bool:
    """Whether the condition of one case of a piecewise function holds at the evaluator's point."""
    match condition:
        case Const(name="else"):
            return True
        case BracketGroup(close=joint, items=items):
            results = [_holds(calc, item) for item in items]
            return any(results) if joint == "or" else all(results)
        case Relation(ops=ops, sides=sides) if _COMPARISONS.keys() >= set(ops):
            pairs = pairwise([calc.value(side) for side in sides])
            return all(_order(calc, *pair) in _COMPARISONS[op] for op, pair in zip(ops, pairs, strict=True))
        case _:
            raise ball.UnsupportedError("condition")


_COMPARISONS = {"=": (0,), "!=": (-1, 1), "<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (0, 1)}
"""For each relation, the results of ``_order`` with which it holds."""


def _order(calc: Evaluator, left: Value, right: Value) -> int:
    """Return 1 if the left value is the larger one, -1 if it is the smaller one, and 0 if they are equal."""
    difference = calc.add(left, -right)
    if isinstance(difference, acb):
        raise ball.UndefinedError
    return ball.certain_sign(difference)


def _extreme(direction: int) -> Operation:
    """Return the operation that computes the largest (``direction`` 1) or smallest (-1) of several real values."""

    def operation(calc: Evaluator, args: tuple[Node, ...]) -> Value:
        values = map(calc.value, args)
        return reduce(lambda best, value: value if _order(calc, value, best) == direction else best, values)

    return operation


def _logarithm(calc: Evaluator, args: tuple[Node, ...]) -> Value:
    base = args[1:] or ((Num(Fraction(10)),) if calc.notation.decimal_log else ())
    top = calc.value(Apply("ln", args[:1]))
    return calc.divide(top, calc.value(Apply("ln", base))) if len(base) == 1 else top


def _remainder(calc: Evaluator, args: tuple[Node, ...]) -> Value:
    divisor = calc.whole(args[1], _ANY_SIZE, least=1)
    return Fraction(calc.whole(args[0], _ANY_SIZE) % divisor)


def _in_base(calc: Evaluator, args: tuple[Node, ...]) -> Value:
    digits, base = calc.whole(args[0], _ANY_SIZE), calc.whole(args[1])
    try:
        return Fraction(int(str(digits), base))
    except ValueError:
        raise ball.UndefinedError from None


def _part(take: Callable[[acb], Value]) -> Operation:
    return lambda calc, args: take(ball.to_complex(calc.value(args[0])))


def _determinant(calc: Evaluator, args: tuple[Node, ...]) -> Value:
    matrix = args[0]
    if not isinstance(matrix, Matrix) or not 1 <= len(matrix.rows) == len(matrix.rows[0]) <= 4:
        raise ball.UnsupportedError("det")
    return _minor(calc, [[calc.value(entry) for entry in row] for row in matrix.rows])


def _minor(calc: Evaluator, rows: list[list[Value]]) -> Value:
    if len(rows) == 1:
        return rows[0][0]
    total: Value = Fraction(0)
    for column, entry in enumerate(rows[0]):
        part = calc.multiply(entry, _minor(calc, [row[:column] + row[column + 1 :] for row in rows[1:]]))
        total = calc.add(total, -part if column % 2 else part)
    return total


Operation = Callable[[Evaluator, tuple[Node, ...]], Value]
"""Function that computes an operation's value, given the evaluator and the trees of the operation's arguments."""

OPERATIONS: dict[str, Operation] = {
    **dict.fromkeys(("add", "mixed"), lambda calc, args: reduce(calc.add, map(calc.value, args))),
    "mul": lambda calc, args: reduce(calc.multiply, map(calc.value, args)),
    "neg": lambda calc, args: -calc.value(args[0]),
    **dict.fromkeys(("div", "ratio"), _quotient),
    "pow": _power,
    "root": lambda calc, args: calc.root(calc.value(args[0]), calc.value(args[1])),
    "abs": lambda calc, args: ball.magnitude(calc.value(args[0])),
    "fact": lambda calc, args: ball.bounded(Fraction(math.factorial(calc.whole(args[0], least=0)))),
    "fact2": lambda calc, args: ball.bounded(Fraction(math.prod(range(calc.whole(args[0], least=-1), 0, -2)))),
    "binom": _binomial,
    "deg": _degrees,
    "rad": lambda calc, args: calc.value(args[0]),
    "cases": _by_cases,
    "log": _logarithm,
    "lg": lambda calc, args: _logarithm(calc, (args[0], Num(Fraction(10)))),
    "asec": lambda calc, args: calc.value(Apply("acos", (Apply("div", (ONE, *args)),))),
    "acsc": lambda calc, args: calc.value(Apply("asin", (Apply("div", (ONE, *args)),))),
    "floor": lambda calc, args: ball.floor(calc.value(args[0])),
    "ceil": lambda calc, args: -ball.floor(-calc.value(args[0])),
    "gcd": lambda calc, args: Fraction(math.gcd(*(calc.whole(arg, _ANY_SIZE) for arg in args))),
    "lcm": lambda calc, args: Fraction(math.lcm(*(calc.whole(arg, _ANY_SIZE) for arg in args))),
    "mod": _remainder,
    "base": _in_base,
    "max": _extreme(1),
    "min": _extreme(-1),
    "Re": _part(lambda value: value.real),
    "Im": _part(lambda value: value.imag),
    "conj": _part(acb.conjugate),
    "det": _determinant,
}
"""Function that evaluates each operation, by name; elementary functions of one value are in ``ball``."""


INFINITY = Const("oo")
MINUS_INFINITY = Apply("neg", (INFINITY,))


def is_infinite(node: Node) -> bool:
    """Return whether a node is plus or minus infinity."""
    return node in (INFINITY, MINUS_INFINITY)


def position(node: Node, point: Mapping[str, Fraction] | None = None) -> float | None:
    """Return the value of an expression as a float, for sorting; ``None`` if it is not a real number.

    Args:
        node: The expression, such as an end of an interval.
        point: Values of its variables; ``None`` if it has none.
    """
    if is_infinite(node):
        return float("inf") if isinstance(node, Const) else float("-inf")
    try:
        value = Evaluator(point or {}, 64).value(node)
        return None if isinstance(value, ball.Complex) else float(ball.middle(value))
    except (ball.NoValueError, ball.TooLargeError, OverflowError):
        return None
