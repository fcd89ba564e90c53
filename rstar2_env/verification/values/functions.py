"""Elementary functions of exact values and intervals, over the reals; a few over the complex numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from rstar2_env.verification.values.interval import (
    ONE_INTERVAL,
    Complex,
    Interval,
    UndefinedError,
    VagueError,
    Value,
    check_argument,
    contains_zero,
    floor_of,
    libmpi,
    sign,
    to_complex,
    to_interval,
    typed,
)

Real = Fraction | Interval
_Function = Callable[[Real, int], Value]


def exp(value: Value, prec: int) -> Value:
    """The exponential."""
    if isinstance(value, Complex):
        return complex_exp((value.re, value.im), prec)
    if isinstance(value, Fraction) and value == 0:
        return Fraction(1)
    return typed(libmpi.mpi_exp(check_argument(to_interval(value, prec)), prec))


def complex_exp(pair: Any, prec: int) -> Complex:
    """The exponential of a pair of intervals."""
    check_argument(pair[0])
    check_argument(pair[1])
    re, im = libmpi.mpci_exp(pair, prec)
    return Complex(re, im)


def complex_log(pair: Any, prec: int) -> Any:
    """The principal logarithm of a pair of intervals that does not contain zero.

    Raises:
        VagueError: The pair contains a part of the branch cut, so its argument is not known.
    """
    re, im = pair
    if sign(re) in (-1, None) and contains_zero(im) and sign(im) is None:
        raise VagueError
    return libmpi.mpci_log(pair, prec)


def log(value: Real, prec: int) -> Value:
    """The natural logarithm of a positive value."""
    if isinstance(value, Fraction) and value == 1:
        return Fraction(0)
    _require_positive(value)
    return typed(libmpi.mpi_log(to_interval(value, prec), prec))


def floor(value: Value) -> Value:
    """The floor."""
    if isinstance(value, Fraction):
        return Fraction(value.__floor__())
    if isinstance(value, Complex):
        raise UndefinedError
    return Fraction(floor_of(value))


def extreme(values: Sequence[Value], prec: int, direction: int) -> Value:
    """The largest or smallest of several real values.

    Args:
        values: The values.
        prec: Bits of precision of intervals.
        direction: 1 for the largest, -1 for the smallest.
    """
    best = values[0]
    for value in values[1:]:
        if isinstance(best, Complex) or isinstance(value, Complex):
            raise UndefinedError
        if isinstance(best, Fraction) and isinstance(value, Fraction):
            best = max(best, value) if direction > 0 else min(best, value)
            continue
        order = sign(libmpi.mpi_sub(to_interval(value, prec), to_interval(best, prec), prec))
        if order is None:
            raise VagueError
        best = value if order == direction else best
    return best


def over_complex(name: str, value: Complex, prec: int) -> Value:
    """Apply a function to a complex value.

    Args:
        name: The function's name in the tree.
        value: The value.
        prec: Bits of precision of intervals.

    Raises:
        UndefinedError: The function is known over the reals only.
    """
    pair = value.re, value.im
    check_argument(value.re)
    check_argument(value.im)
    if name == "exp":
        return complex_exp(pair, prec)
    if name in ("ln", "log"):
        if contains_zero(value.re) and contains_zero(value.im):
            raise VagueError
        re, im = complex_log(pair, prec)
        return Complex(re, im)
    if name in ("sin", "cos", "tan"):
        sine, cosine = libmpi.mpci_sin(pair, prec), libmpi.mpci_cos(pair, prec)
        if name == "tan":
            if contains_zero(cosine[0]) and contains_zero(cosine[1]):
                raise VagueError
            sine = libmpi.mpci_div(sine, cosine, prec)
        re, im = cosine if name == "cos" else sine
        return Complex(re, im)
    if name == "arg":
        return typed(libmpi.mpci_arg(pair, prec))
    raise UndefinedError


def _require_positive(value: Real) -> None:
    direction = (value > 0) - (value < 0) if isinstance(value, Fraction) else sign(value)
    if direction is None:
        raise VagueError
    if direction <= 0:
        raise UndefinedError


def _sine(value: Real, prec: int) -> Value:
    if isinstance(value, Fraction) and value == 0:
        return Fraction(0)
    return typed(libmpi.mpi_sin(check_argument(to_interval(value, prec)), prec))


def _cosine(value: Real, prec: int) -> Value:
    if isinstance(value, Fraction) and value == 0:
        return Fraction(1)
    return typed(libmpi.mpi_cos(check_argument(to_interval(value, prec)), prec))


def _quotient(top: Value, bottom: Value, prec: int) -> Value:
    if isinstance(top, Complex) or isinstance(bottom, Complex):
        raise UndefinedError
    if isinstance(bottom, Fraction):
        if bottom == 0:
            raise UndefinedError
        if isinstance(top, Fraction):
            return top / bottom
    under = to_interval(bottom, prec)
    if contains_zero(under):
        raise VagueError
    return typed(libmpi.mpi_div(to_interval(top, prec), under, prec))


def _hyperbolic(value: Real, prec: int, sine: bool) -> Value:
    if isinstance(value, Fraction) and value == 0:
        return Fraction(0 if sine else 1)
    up = libmpi.mpi_exp(check_argument(to_interval(value, prec)), prec)
    down = libmpi.mpi_div(ONE_INTERVAL, up, prec)
    total = libmpi.mpi_sub(up, down, prec) if sine else libmpi.mpi_add(up, down, prec)
    return typed(libmpi.mpi_shift(total, -1))


def _arc_tangent(value: Real, prec: int) -> Value:
    if isinstance(value, Fraction) and value == 0:
        return Fraction(0)
    return typed(libmpi.mpi_atan(to_interval(value, prec), prec))


def _half_pi(prec: int) -> Interval:
    return typed(libmpi.mpi_shift(libmpi.mpi_pi(prec), -1))


def _arc_sine(value: Real, prec: int) -> Value:
    if isinstance(value, Fraction):
        if value == 0:
            return value
        if abs(value) == 1:
            half = _half_pi(prec)
            return half if value > 0 else typed(libmpi.mpi_neg(half))
        if abs(value) > 1:
            raise UndefinedError
    real = to_interval(value, prec)
    rest = libmpi.mpi_sub(ONE_INTERVAL, libmpi.mpi_square(real, prec), prec)
    _require_positive(rest)
    return _arc_tangent(typed(libmpi.mpi_div(real, libmpi.mpi_sqrt(rest, prec), prec)), prec)


def _arc_cosine(value: Real, prec: int) -> Value:
    if isinstance(value, Fraction) and value == 1:
        return Fraction(0)
    return typed(libmpi.mpi_sub(_half_pi(prec), to_interval(_real(_arc_sine(value, prec)), prec), prec))


def _arc_cotangent(value: Real, prec: int) -> Value:
    return typed(libmpi.mpi_sub(_half_pi(prec), to_interval(_real(_arc_tangent(value, prec)), prec), prec))


def _real(value: Value) -> Real:
    if isinstance(value, Complex):
        raise UndefinedError
    return value


def _reciprocal(value: Real, prec: int) -> Real:
    return _real(_quotient(Fraction(1), value, prec))


def _area(value: Real, prec: int, offset: Interval) -> Value:
    real = to_interval(value, prec)
    under = libmpi.mpi_add(libmpi.mpi_square(real, prec), offset, prec)
    if sign(under) == 0:
        return log(value, prec)
    _require_positive(under)
    return log(typed(libmpi.mpi_add(real, libmpi.mpi_sqrt(under, prec), prec)), prec)


def _area_tangent(value: Real, prec: int) -> Value:
    real = to_interval(value, prec)
    ratio = _quotient(
        typed(libmpi.mpi_add(ONE_INTERVAL, real, prec)),
        typed(libmpi.mpi_sub(ONE_INTERVAL, real, prec)),
        prec,
    )
    return typed(libmpi.mpi_shift(to_interval(_real(log(_real(ratio), prec)), prec), -1))


def _signum(value: Real, prec: int) -> Value:
    direction = (value > 0) - (value < 0) if isinstance(value, Fraction) else sign(value)
    if direction is None:
        raise VagueError
    return Fraction(direction)


def _argument(value: Real, prec: int) -> Value:
    direction = (value > 0) - (value < 0) if isinstance(value, Fraction) else sign(value)
    if not direction:
        raise UndefinedError
    return Fraction(0) if direction > 0 else typed(libmpi.mpi_pi(prec))


_MINUS_ONE = typed(libmpi.mpi_neg(ONE_INTERVAL))

REAL: dict[str, _Function] = {
    "exp": lambda x, p: exp(x, p),
    "ln": log,
    "sin": _sine,
    "cos": _cosine,
    "tan": lambda x, p: _quotient(_sine(x, p), _cosine(x, p), p),
    "cot": lambda x, p: _quotient(_cosine(x, p), _sine(x, p), p),
    "sec": lambda x, p: _quotient(Fraction(1), _cosine(x, p), p),
    "csc": lambda x, p: _quotient(Fraction(1), _sine(x, p), p),
    "sinh": lambda x, p: _hyperbolic(x, p, True),
    "cosh": lambda x, p: _hyperbolic(x, p, False),
    "tanh": lambda x, p: _quotient(_hyperbolic(x, p, True), _hyperbolic(x, p, False), p),
    "coth": lambda x, p: _quotient(_hyperbolic(x, p, False), _hyperbolic(x, p, True), p),
    "sech": lambda x, p: _quotient(Fraction(1), _hyperbolic(x, p, False), p),
    "csch": lambda x, p: _quotient(Fraction(1), _hyperbolic(x, p, True), p),
    "asin": _arc_sine,
    "acos": _arc_cosine,
    "atan": _arc_tangent,
    "acot": _arc_cotangent,
    "asec": lambda x, p: _arc_cosine(_reciprocal(x, p), p),
    "acsc": lambda x, p: _arc_sine(_reciprocal(x, p), p),
    "asinh": lambda x, p: _area(x, p, ONE_INTERVAL),
    "acosh": lambda x, p: _area(x, p, _MINUS_ONE),
    "atanh": _area_tangent,
    "sgn": _signum,
    "arg": _argument,
}
"""Functions of one real value, by the name that the tree uses. Each raises ``UndefinedError`` outside its domain."""

__all__ = ["REAL", "complex_exp", "complex_log", "exp", "extreme", "floor", "log", "over_complex", "to_complex"]
