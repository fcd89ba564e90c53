"""The ends of intervals: infinity, and where an end lies."""

from __future__ import annotations

from fractions import Fraction

from rstar2_env.verification.read.nodes import Apply, Const, Node, symbols
from rstar2_env.verification.values.ball import (
    Complex,
    TooLargeError,
    UndefinedError,
    UnsupportedError,
    VagueError,
    approximate,
)
from rstar2_env.verification.values.evaluate import Evaluator

INFINITY = Const("oo")
MINUS_INFINITY = Apply("neg", (INFINITY,))


def is_infinite(node: Node) -> bool:
    """Whether a node is plus or minus infinity."""
    match node:
        case Const(name="oo"):
            return True
        case Apply(op="neg", args=(Const(name="oo"),)):
            return True
        case _:
            return False


def position(node: Node) -> float | None:
    """The position of an end, as a float for sorting; ``None`` if it is not a number."""
    if is_infinite(node):
        return float("inf") if isinstance(node, Const) else float("-inf")
    if symbols(node):
        return None
    try:
        value = Evaluator({}, 64).value(node)
    except (UnsupportedError, UndefinedError, VagueError, TooLargeError):
        return None
    if isinstance(value, Fraction):
        try:
            return float(value)
        except OverflowError:
            return None
    return None if isinstance(value, Complex) else approximate(value)
