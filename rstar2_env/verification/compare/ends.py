"""Ends of intervals: whether an end is infinite, and its value as a float."""

from __future__ import annotations

from fractions import Fraction

from rstar2_env.verification.read.nodes import Apply, Const, Node, symbols
from rstar2_env.verification.values.ball import (
    Complex,
    NoValueError,
    TooLargeError,
    middle,
)
from rstar2_env.verification.values.evaluate import Evaluator

INFINITY = Const("oo")
MINUS_INFINITY = Apply("neg", (INFINITY,))


def is_infinite(node: Node) -> bool:
    """Return whether a node is plus or minus infinity."""
    return node in (INFINITY, MINUS_INFINITY)


def position(node: Node) -> float | None:
    """Return an end of an interval as a float, for sorting; ``None`` if the end is not a constant real number."""
    if is_infinite(node):
        return float("inf") if isinstance(node, Const) else float("-inf")
    if symbols(node):
        return None
    try:
        value = Evaluator({}, 64).value(node)
        if isinstance(value, Complex):
            return None
        return float(value if isinstance(value, Fraction) else middle(value))
    except (NoValueError, TooLargeError, OverflowError):
        return None
