"""Ends of intervals: whether an end is infinite, and its value as a float."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from rstar2_env.verification.read.nodes import Apply, Const, Node
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
        return None if isinstance(value, Complex) else float(middle(value))
    except (NoValueError, TooLargeError, OverflowError):
        return None
