"""Elementary functions of exact values and balls, over the reals, and some of them over the complex numbers."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from flint import acb, arb

from rstar2_env.verification.values.ball import (
    Real,
    UndefinedError,
    VagueError,
    Value,
    check_argument,
    contains_zero,
    floor_of,
    known,
    magnitude,
    sign,
    to_ball,
)


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
"""Functions of one complex value, by the name that the tree uses."""


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
        method: Computes the function of a ball.
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


def _reciprocal(name: str) -> Callable[[Real], Real]:
    """Return the function of ``REAL`` with this name, applied to the reciprocal of its argument."""

    def function(value: Real) -> Real:
        if value == 0:
            raise UndefinedError
        return REAL[name](1 / value if isinstance(value, Fraction) else known(1 / value))

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
    "asec": _reciprocal("acos"),
    "acsc": _reciprocal("asin"),
    "asinh": _function(arb.asinh, (0, 0)),
    "acosh": _function(arb.acosh, (1, 0), lambda x: x == 1 or _positive(x - 1)),
    "atanh": _function(arb.atanh, (0, 0), lambda x: _positive(1 - magnitude(x))),
    "sgn": lambda x: Fraction(certain_sign(x)),
    "arg": _argument,
}
"""Functions of one real value, by the name that the tree uses. Each raises ``UndefinedError`` outside its domain."""
