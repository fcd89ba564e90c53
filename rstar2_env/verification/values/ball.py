"""Values of expressions: exact fractions, and balls (real or complex intervals) that contain the true value.

This is a thin layer over the ball arithmetic of FLINT, with elementary functions of one value. Two balls that do not
overlap belong to different numbers, so a single evaluation can refute an equality. ``Evaluator`` sets the precision in
FLINT's context; since the precision is bounded, so is the cost of every operation. Not covered: trees, and powers and
roots (see ``evaluate``).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeAlias, TypeVar

from flint import acb, arb, fmpq, fmpz

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
    """Return an exponent e such that an exact number is at most 2**e; ``_TINY`` for zero."""
    digits, exponent = exact.man_exp()
    return int(exponent) + abs(int(digits)).bit_length() if digits else _TINY


def width_exponent(value: arb) -> int:
    """Return an exponent e such that the ball is at most 2**e wide; ``_TINY`` for a point."""
    return _exponent(value.rad()) + 1


def size_exponent(value: arb) -> int:
    """Return an exponent e such that no absolute value in the ball exceeds 2**e; ``_TINY`` for zero."""
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


def exp(value: Value) -> Value:
    """Return the exponential of a value."""
    return over_complex("exp", value) if isinstance(value, acb) else REAL["exp"](value)


def complex_log(value: acb) -> acb:
    """Return the principal logarithm of a complex value.

    Raises:
        VagueError: The ball contains zero, or crosses the branch cut, so that the argument (angle) is not known.
    """
    if contains_zero(value) or (sign(value.real) in (-1, None) and sign(value.imag) is None):
        raise VagueError
    return known(value.log())


def floor(value: Value) -> Value:
    """Return the floor of a value."""
    if isinstance(value, acb):
        raise UndefinedError
    return Fraction(value.__floor__() if isinstance(value, Fraction) else floor_of(value))


def over_complex(name: str, value: acb) -> Value:
    """Return the value of a function at a complex number.

    Args:
        name: Name of the function, as trees use it.
        value: The value.

    Raises:
        UndefinedError: The function is implemented only over the reals.
    """
    check_argument(value.real)
    check_argument(value.imag)
    if name not in COMPLEX:
        raise UndefinedError
    found: Value = known(COMPLEX[name](value))
    return found


COMPLEX: dict[str, Callable[[acb], Any]] = {
    **{"exp": acb.exp, "sin": acb.sin, "cos": acb.cos, "tan": acb.tan},
    **{"ln": complex_log, "log": complex_log, "arg": acb.arg},
}
"""Functions of one complex value, by name in expression trees."""


def certain_sign(value: Real) -> int:
    """Return the sign of a value.

    Raises:
        VagueError: The ball contains zero and other numbers.
    """
    direction = sign(value)
    if direction is None:
        raise VagueError
    return direction


def _positive(value: Real) -> bool:
    return certain_sign(value) > 0


def _within(value: Real) -> bool:
    """Whether a value lies between -1 and 1."""
    return magnitude(value) == 1 or _positive(1 - magnitude(value))


def _function(
    method: Callable[[arb], arb],
    exact: tuple[int, int] | None = None,
    domain: Callable[[Real], bool] = lambda value: True,
    *,
    grows: bool = False,
) -> Callable[[Real], Real]:
    """Return a function of one real value.

    Args:
        method: Computes the function for a ball.
        exact: The only rational argument at which the function is rational, and its value there.
        domain: Returns whether an argument is in the domain of the function.
        grows: Whether the cost grows with the argument; if so, large arguments are refused.
    """

    def function(value: Real) -> Real:
        if exact is not None and value == exact[0]:
            return Fraction(exact[1])
        if not domain(value):
            raise UndefinedError
        ball = to_ball(value)
        return known(method(check_argument(ball) if grows else ball))

    return function


def _nonzero(value: Real) -> bool:
    return value != 0


def _argument(value: Real) -> Real:
    if not (direction := certain_sign(value)):
        raise UndefinedError
    return Fraction(0) if direction > 0 else arb.pi()


REAL: dict[str, Callable[[Real], Real]] = {
    "exp": _function(arb.exp, (0, 1), grows=True),
    "ln": _function(arb.log, (1, 0), _positive),
    "sin": _function(arb.sin, (0, 0), grows=True),
    "cos": _function(arb.cos, (0, 1), grows=True),
    "tan": _function(arb.tan, (0, 0), grows=True),
    "cot": _function(arb.cot, None, _nonzero, grows=True),
    "sec": _function(arb.sec, (0, 1), grows=True),
    "csc": _function(arb.csc, None, _nonzero, grows=True),
    "sinh": _function(arb.sinh, (0, 0), grows=True),
    "cosh": _function(arb.cosh, (0, 1), grows=True),
    "tanh": _function(arb.tanh, (0, 0), grows=True),
    "coth": _function(arb.coth, None, _nonzero, grows=True),
    "sech": _function(arb.sech, (0, 1), grows=True),
    "csch": _function(arb.csch, None, _nonzero, grows=True),
    "asin": _function(arb.asin, (0, 0), _within),
    "acos": _function(arb.acos, (1, 0), _within),
    "atan": _function(arb.atan, (0, 0)),
    "acot": _function(lambda x: arb.pi() / 2 - x.atan()),
    "asinh": _function(arb.asinh, (0, 0)),
    "acosh": _function(arb.acosh, (1, 0), lambda x: x == 1 or _positive(x - 1)),
    "atanh": _function(arb.atanh, (0, 0), lambda x: _positive(1 - magnitude(x))),
    "sgn": lambda x: Fraction(certain_sign(x)),
    "arg": _argument,
}
"""Functions of one real value, by name in expression trees. Each raises ``UndefinedError`` outside its domain."""


def combined(operation: Callable[[Any, Any], Any], left: Value, right: Value) -> Value:
    """Apply an operation to two values; if they differ in kind (exact, real, complex), convert one of them."""
    if isinstance(left, Fraction) and isinstance(right, Fraction):
        return bounded(operation(left, right))
    if isinstance(left, acb) or isinstance(right, acb):
        pair: acb = operation(to_complex(left), to_complex(right))
        return known(pair)
    ball: arb = operation(to_ball(left), to_ball(right))
    return known(ball)


def exact_root(number: int, index: int) -> int | None:
    """Return the root of a non-negative integer; ``None`` if the root is not an integer, or hard to compute."""
    if number < 2:
        return number
    if index != 2 and number.bit_length() > 2_000:
        return None
    root = int(fmpz(number).root(index))
    return root if root**index == number else None
