"""Decides whether a condition on one variable excludes values for which the question wants an answer.

The domain of a variable is the set of values that the question and the gold answer allow, without the points at which
the gold answer has no real value (roots, logarithms). A condition holds on the domain if no value in the domain
violates it, or only isolated real points do. Not covered: conditions on several variables.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from rstar2_env.verification.compare import symbolic
from rstar2_env.verification.compare.ends import INFINITY, MINUS_INFINITY, position
from rstar2_env.verification.compare.realset import EVERYTHING, Piece, complement, intersection, read_set
from rstar2_env.verification.compare.tidy import number
from rstar2_env.verification.read.nodes import (
    INEQUALITIES,
    ONE,
    ZERO,
    Apply,
    BracketGroup,
    Const,
    Node,
    Num,
    Relation,
    Sym,
    key,
    symbols,
    walk,
)
from rstar2_env.verification.values.ball import NoValueError, TooLargeError
from rstar2_env.verification.values.evaluate import Evaluator

_BITS = 128
_NARROW = 1e-9
"""Relative width below which an interval counts as one point, since its ends are known only as floats."""

_MANY = 8
"""Widest interval in which whole numbers are checked one by one."""

_FROM_ONE = (Piece(ONE, INFINITY, low_closed=True, high_closed=False),)
_FROM_ZERO = (Piece(ZERO, INFINITY, low_closed=True, high_closed=False),)


@dataclass(frozen=True, slots=True)
class Domain:
    """The values that a variable may have.

    Attributes:
        name: Name of the variable.
        pieces: Intervals that contain the values.
        whole: Whether the values are only the whole numbers in the intervals.
    """

    name: str
    pieces: tuple[Piece, ...]
    whole: bool


def domain_of(name: str, values: Sequence[Node], stated: Sequence[Node], own: Sequence[Node] = ()) -> Domain | None:
    """Return the domain of a variable; ``None`` if no condition is about it, or if the conditions exclude each other.

    Args:
        name: The variable.
        values: The values of the gold answer.
        stated: The conditions of the question and of the gold answer.
        own: The answer's own conditions that name sets of numbers, such as ``k in N``, in which N begins with 1.
    """
    about = [node for node in stated if symbols(node) == {name}]
    occurs = any(name in symbols(value) for value in values)
    if not about and not occurs:
        return None
    pieces: tuple[Piece, ...] = EVERYTHING
    known = [solution(node, name) for node in about]
    if name == "n" and all(part is None for part in known):
        known.append(_FROM_ONE)  # by convention, n counts from 1
    known += [_FROM_ONE for node in own if symbols(node) == {name} and _is_set(node, "N")]
    for part in (*known, *(solution(demand, name) for demand in _demands(values, name))):
        together = None if part is None else intersection(pieces, part)
        pieces = together if together is not None else pieces
    whole = name == "n" or any(_is_set(node, "ZN") for node in (*about, *own) if name in symbols(node))
    return Domain(name, pieces, whole) if pieces else None


def holds_on(domain: Domain, condition: Node, values: Sequence[Node], *, exact: bool = False) -> bool:
    """Return whether a condition certainly holds on a domain, at all points where the gold answer has a value.

    Args:
        domain: The values of the variable of the condition.
        condition: The condition.
        values: The values of the gold answer.
        exact: Whether the condition must hold at isolated points too.
    """
    allowed = solution(condition, domain.name)
    left = None if allowed is None else intersection(domain.pieces, complement(allowed))
    return left is not None and not any(_counts(piece, domain, values, exact=exact) for piece in left)


def _counts(piece: Piece, domain: Domain, values: Sequence[Node], *, exact: bool) -> bool:
    """Whether the gold answer may have values in an interval that a condition excludes.

    In a domain of real numbers, a very narrow interval counts only with ``exact``.
    """
    low, high = position(piece.low), position(piece.high)
    if low is None or high is None:
        return True
    if not domain.whole:
        wide = high - low > _NARROW * (1 + min(abs(low), abs(high)))
        return wide or (exact and _has_values(values, domain.name, Fraction(low)))
    if math.isinf(low) or math.isinf(high) or high - low > _MANY:
        return True
    inside = [
        at
        for at in range(math.ceil(low), math.floor(high) + 1)
        if (at != low or piece.low_closed) and (at != high or piece.high_closed)
    ]
    return any(_has_values(values, domain.name, Fraction(at)) for at in inside)


def _has_values(values: Sequence[Node], name: str, at: Fraction) -> bool:
    others = {other for value in values for other in symbols(value)} - {name}
    point = {**dict.fromkeys(others, Fraction(2)), name: at}
    try:
        return None not in [Evaluator(point, _BITS).value(value) for value in values]
    except (NoValueError, TooLargeError):
        return False


def solution(condition: Node, name: str) -> tuple[Piece, ...] | None:
    """Return the real values of a variable for which a condition holds; ``None`` if they are not known.

    Args:
        condition: A relation, or several with the same variable, joined by "or".
        name: The variable.
    """
    if symbols(condition) != {name}:
        return None
    if _is_set(condition, "ZRQ"):
        return EVERYTHING
    if _is_set(condition, "N"):
        return _FROM_ZERO
    found = read_set(condition)
    if found is not None and found.variable == key(Sym(name)):
        ends = [end for piece in found.pieces for end in (piece.low, piece.high)]
        return found.pieces if None not in [position(end) for end in ends] else None
    match condition:
        case Relation(ops=("=",), sides=(Sym(), value)) if position(value) is not None:
            return (Piece(value, value, low_closed=True, high_closed=True),)
        case Relation(ops=ops, sides=sides) if set(ops) <= INEQUALITIES:
            steps = zip(ops, pairwise(sides), strict=True)
            return intersection(*(_solved(op, *pair, name) for op, pair in steps if any(map(symbols, pair))))
        case _:
            return None


def _solved(op: str, left: Node, right: Node, name: str) -> tuple[Piece, ...] | None:
    """Solve one inequality: with ``read_set`` if the variable already stands alone on one side, else with SymPy."""
    simple = read_set(Relation((op,), (left, right)))
    if simple is not None and simple.variable == key(Sym(name)):
        return simple.pieces
    found = symbolic.solved(op, left, right, name)
    if found is None:
        return None
    return tuple(Piece(_end(low), _end(high), *closed) for low, high, *closed in found)


def _end(value: float) -> Node:
    if math.isinf(value):
        return INFINITY if value > 0 else MINUS_INFINITY
    return Num(Fraction(value))


def _is_set(node: Node, kinds: Iterable[str]) -> bool:
    """Whether a node states that a variable is in one of the sets of numbers ``kinds``."""
    match node:
        case Relation(ops=("in",), sides=(Sym(), Const(name=kind))):
            return kind in kinds
        case _:
            return False


def is_number_set(node: Node) -> bool:
    """Return whether a node only names the set of numbers of a variable: ``k in Z``."""
    return _is_set(node, "ZNQRC")


def _demands(values: Sequence[Node], name: str) -> Iterator[Relation]:
    """Iterate over the inequalities in one variable, ``name``, that must hold for the values to be real."""
    for part in (part for value in values for part in walk(value)):
        if not isinstance(part, Apply) or any(isinstance(inner, BracketGroup) for inner in part.args):
            continue
        inner = part.args[0]
        if symbols(inner) != {name}:
            continue
        match part:
            case Apply(op="root", args=(_, Num(value=index))) if index % 2 == 0:
                yield Relation((">=",), (inner, ZERO))
            case Apply(op="pow", args=(_, exponent)) if (
                power := number(exponent)
            ) is not None and power.denominator % 2 == 0:
                yield Relation((">=",), (inner, ZERO))
            case Apply(op="ln" | "log" | "lg"):
                yield Relation((">",), (inner, ZERO))
            case Apply(op="asin" | "acos"):
                yield Relation(("<=", "<="), (Num(Fraction(-1)), inner, ONE))
            case Apply(op="acosh"):
                yield Relation((">=",), (inner, ONE))
