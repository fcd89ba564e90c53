"""Compares equations, inequalities and sets of real numbers.

Covered: equations and inequalities up to a constant factor; an equation solved for a variable in which it is linear;
chains ``a < b < c`` term by term. Sets of reals (intervals, unions, inequalities in one variable, set-builder notation)
are converted to pieces: intervals with open or closed ends, and points. Ends are expressions, so ``[k pi, k pi + 1)``
works. Not covered: solving a condition for its variable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from rstar2_env.verification.compare.equality import Rules, Same, all_of, proportional, same_expression
from rstar2_env.verification.compare.structure import is_label
from rstar2_env.verification.read.nodes import (
    ZERO,
    Apply,
    BracketGroup,
    Builder,
    Const,
    Given,
    Matrix,
    Node,
    Num,
    Relation,
    Sym,
    Words,
    is_braced,
    key,
    replace_symbols,
    symbols,
)
from rstar2_env.verification.values.evaluate import INFINITY, MINUS_INFINITY, is_infinite, position

SameAll = Callable[[Sequence[Node], Sequence[Node]], bool | None]


def same_equation(gold: Relation, answer: Relation, rules: Rules, same_all: SameAll) -> bool | None:
    """Compare two equations or inequalities.

    They are equal if their differences of left and right side are equal up to a constant factor. Chains (``a < b < c``)
    are equal if all their operators and sides are equal. An answer that solves the gold equation for a variable
    (``y = 2 - x`` for ``x + y = 2``) also equals it, if the gold equation is linear in that variable.

    Args:
        gold: The gold equation or inequality.
        answer: The equation or inequality to grade.
        rules: The rules of the comparison.
        same_all: Function that compares two sequences of values.

    Returns:
        ``None`` when evaluation cannot decide.
    """
    one, other = _oriented(gold), _oriented(answer)
    constant = not symbols(gold) and not symbols(answer)
    if one is None or other is None or (constant and one[0] == other[0] in ("<", "<=")):
        chain, other_chain = _upward(gold), _upward(answer)
        return chain.ops == other_chain.ops and same_all(chain.sides, other_chain.sides)
    if one[0] != other[0] or not symbols(answer) or not symbols(gold):
        return False  # a tautology, or nothing to solve
    result = proportional(one[1], other[1], rules, positive=one[0] not in ("=", "!="))
    solved = answer.sides[0]
    if result is not True and isinstance(solved, Sym) and solved.name not in symbols(answer.sides[1]):
        return _solved_for(gold, solved.name, answer.sides[1]) or result
    return result


def solves(gold: Relation, answer: Node) -> bool:
    """Return whether the answer is the solution of the gold equation for one of its variables."""
    missing = symbols(gold) - symbols(answer)
    if len(missing) != 1 or len(symbols(gold)) < 2 or isinstance(answer, Relation | BracketGroup | Matrix | Words):
        return False
    return _solved_for(gold, next(iter(missing)), answer)


def _solved_for(gold: Relation, name: str, value: Node) -> bool:
    """Return whether a value of a variable solves an equation that is linear in that variable."""
    oriented = _oriented(gold)
    steps = linear_steps(oriented[1], name) if oriented is not None and oriented[0] == "=" else None
    if oriented is None or steps is None or same_expression(steps[0], steps[1], Rules()) is not False:
        return False
    return same_expression(replace_symbols(oriented[1], {name: value}), ZERO, Rules()) is True


def linear_steps(node: Node, name: str) -> list[Node] | None:
    """Return an expression with 0, 1 and 2 in place of a variable; ``None`` if it is not linear in the variable."""
    at = [replace_symbols(node, {name: Num(Fraction(point))}) for point in range(3)]
    bend = Apply("add", (at[0], at[2], Apply("neg", (Apply("mul", (Num(Fraction(2)), at[1])),))))
    return at if same_expression(bend, ZERO, Rules()) is True else None


def _oriented(node: Relation) -> tuple[str, Node] | None:
    """Return ``a < b`` as ``<`` and ``a - b``, to compare with zero; ``None`` for chains and other operators."""
    node = _upward(node)
    if len(node.sides) != 2 or node.ops[0] not in ("=", "!=", "<", "<="):
        return None
    left, right = node.sides
    return node.ops[0], Apply("add", (left, Apply("neg", (right,))))


def _upward(node: Relation) -> Relation:
    """Return a chain of ``>`` as a chain of ``<``; other chains unchanged."""
    if all(op in (">", ">=") for op in node.ops):
        flipped = tuple("<" if op == ">" else "<=" for op in reversed(node.ops))
        return Relation(flipped, tuple(reversed(node.sides)))
    return node


_FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "!=": "!="}


@dataclass(frozen=True, slots=True)
class Piece:
    """An interval of the reals; a point is a closed interval with two equal ends."""

    low: Node
    high: Node
    low_closed: bool
    high_closed: bool


@dataclass(frozen=True, slots=True)
class RealSet:
    """A union of intervals and points; ``variable`` is set if a condition such as ``x > 1`` defines the union."""

    pieces: tuple[Piece, ...]
    variable: str | None = None


EVERYTHING = (Piece(MINUS_INFINITY, INFINITY, False, False),)


def read_set(node: Node, *, as_set: bool = False) -> RealSet | None:
    """Convert a node to a set of reals; return ``None`` if the node is not a set.

    Args:
        node: The node.
        as_set: Whether the node is known to be a set, so that ``(1, 2)`` is an open interval and ``{1}`` a point.
    """
    match node:
        case BracketGroup(open="(" | "[" as opening, close=closing, items=(low, high)):
            if not as_set and opening == "(" and closing == ")" and not (is_infinite(low) or is_infinite(high)):
                return None
            start, end = position(low), position(high)
            if start is not None and end is not None and start >= end:
                return None  # a point of the plane
            return RealSet((Piece(low, high, opening == "[", closing == "]"),))
        case BracketGroup(open="\\{", items=items) if as_set:
            if any(isinstance(item, Relation | BracketGroup | Words) for item in items):
                return None
            return RealSet(tuple(Piece(item, item, True, True) for item in items))
        case Apply(op="union" | "inter" | "diff", args=(left, right)):
            one, other = read_set(left, as_set=True), read_set(right, as_set=True)
            if one is None or other is None:
                return None
            if node.op == "union":
                return RealSet(one.pieces + other.pieces)
            pieces = intersection(one.pieces, complement(other.pieces) if node.op == "diff" else other.pieces)
            return None if pieces is None else RealSet(pieces)
        case Apply(op="add", args=(left, Apply(op="neg", args=(BracketGroup(open="\\{") as right,)))):
            return read_set(Apply("diff", (left, right)))  # such as "{x | x < 3} - {1}"
        case Relation():
            return _from_relation(node)
        case Builder(head=head, conditions=conditions):
            return _from_builder(head, conditions)
        case Const(name="R") | Words(text="#R"):
            return RealSet(EVERYTHING)
        case Const(name="empty") | Words(text="#empty"):
            return RealSet(())
        case BracketGroup(open="", close=joint, items=items) if len(items) > 1:
            return _from_list(items, joint)
        case Given(body=body):
            return read_set(body, as_set=as_set)
        case _:
            return None


def _from_relation(node: Relation) -> RealSet | None:
    """Read ``x < b``, ``a < x < b`` or ``x in S`` for a variable or label x; ``None`` for other relations."""
    sides, ops = node.sides, node.ops
    if len(sides) == 2 and ops[0] in ("in", "notin") and is_label(sides[0]) and not is_braced(sides[1]):
        inner = read_set(sides[1], as_set=True)
        pieces = None if inner is None else inner.pieces if ops[0] == "in" else complement(inner.pieces)
        return None if pieces is None else RealSet(pieces, key(sides[0]))
    if any(op not in _FLIPPED for op in ops) or all(op == "=" for op in ops):
        return None
    if len(sides) == 2:
        left, right = sides
        flipped = is_label(right) and not is_label(left)
        middle, bounds = (right, [(_FLIPPED[ops[0]], left)]) if flipped else (left, [(ops[0], right)])
    elif len(sides) == 3 and {"=", "!="}.isdisjoint(ops):
        middle, bounds = sides[1], [(_FLIPPED[ops[0]], sides[0]), (ops[1], sides[2])]
    else:
        return None
    if (variable := _variable(middle)) is None or any(symbols(end) & symbols(middle) for _, end in bounds):
        return None
    name, inside_abs = variable
    parts = [(_unfold_abs if inside_abs else _half_line)(op, end) for op, end in bounds]
    pieces = intersection(*parts)
    return None if pieces is None else RealSet(pieces, name)


def _variable(node: Node) -> tuple[str, bool] | None:
    """Return the name of a variable or label (``f(x)``), and whether it is in bars as in ``|x|``; else ``None``."""
    if isinstance(node, Apply) and node.op == "abs" and isinstance(node.args[0], Sym):
        return key(node.args[0]), True
    return (key(node), False) if is_label(node) and not isinstance(node, Words) else None


def _half_line(op: str, end: Node) -> tuple[Piece, ...]:
    """Return the set of all x that satisfy ``x op end``, for an operator of ``_FLIPPED``."""
    below = Piece(MINUS_INFINITY, end, False, op == "<=")
    above = Piece(end, INFINITY, op == ">=", False)
    point = Piece(end, end, True, True)
    return {"<": (below,), "<=": (below,), ">": (above,), ">=": (above,), "=": (point,), "!=": (below, above)}[op]


def _unfold_abs(op: str, end: Node) -> tuple[Piece, ...] | None:
    """Return the set of all x that satisfy ``|x| op end``, for a positive end; ``None`` for other ends."""
    value, right = position(end), _half_line(op, end)
    if value is None or value <= 0:
        return None
    left = tuple(
        Piece(_negate(part.high), _negate(part.low), part.high_closed, part.low_closed) for part in right[::-1]
    )
    return intersection(left, right) if op in ("<", "<=", "!=") else left + right


def _negate(node: Node) -> Node:
    return node.args[0] if isinstance(node, Apply) and node.op == "neg" else Apply("neg", (node,))


def _from_builder(head: Node, conditions: tuple[Node, ...]) -> RealSet | None:
    unions: list[tuple[Piece, ...]] = []
    if isinstance(head, Relation) and head.ops == ("in",) and head.sides[1] == Const("R"):
        head = head.sides[0]
    if not isinstance(head, Sym):
        return None
    for condition in conditions:
        if isinstance(condition, Relation) and condition.ops == ("in",) and condition.sides[1] == Const("R"):
            continue
        inner = read_set(condition, as_set=True)
        if inner is None or inner.variable not in (None, key(head)):
            return None
        unions.append(inner.pieces)
    pieces = intersection(*unions)
    return None if pieces is None else RealSet(pieces)


def _from_list(items: tuple[Node, ...], joint: str) -> RealSet | None:
    """Read conditions that ``joint`` joins; with commas, "and" is tried first, and "or" if the set is then empty."""
    parts: list[RealSet] = []
    for item in items:
        if isinstance(items[0], Relation) and items[0].ops == ("!=",) and isinstance(item, Num | Apply):
            item = Relation(("!=",), (items[0].sides[0], item))  # such as "x != 0, 1"
        part = _solution(item) or read_set(item)
        if part is None or isinstance(item, Words | Const):
            return None
        parts.append(part)
    names = {part.variable for part in parts if part.variable is not None}
    if len(names) > 1 or all(map(_solution, items)):
        return None
    name = next(iter(names), None)
    if joint != "or" and name is not None:
        pieces = intersection(*(part.pieces for part in parts))
        if joint == "and" or pieces:
            return None if pieces is None else RealSet(pieces, name)
    pieces = tuple(piece for part in parts for piece in part.pieces)
    if name is None and joint != "or" and len(merged(pieces) or pieces) < len(pieces):
        return None  # sets that touch are separate answers, not one set
    return RealSet(pieces, name)


def _solution(node: Node) -> RealSet | None:
    """Return the set that contains only 5 for the node ``x = 5``; ``None`` for other nodes."""
    match node:
        case Relation(ops=("=",), sides=(label, value)) if is_label(label):
            return RealSet((Piece(value, value, True, True),), key(label))
        case _:
            return None


def intersection(*unions: tuple[Piece, ...] | None) -> tuple[Piece, ...] | None:
    """Return the intersection of unions of intervals; ``None`` if a union is ``None``, or ends cannot be ordered."""
    pieces: tuple[Piece, ...] = EVERYTHING
    for union in unions:
        if union is None:
            return None
        met = [_meet(left, right) for left in pieces for right in union]
        if None in met:
            return None
        pieces = tuple(piece for found in met for piece in found or ())
    return pieces


def _meet(left: Piece, right: Piece) -> tuple[Piece, ...] | None:
    """Return the intersection of two pieces, () if it is empty; ``None`` if the order of their ends is unknown."""
    low = _inner_end((left.low, left.low_closed), (right.low, right.low_closed), MINUS_INFINITY)
    high = _inner_end((left.high, left.high_closed), (right.high, right.high_closed), INFINITY)
    if low is None or high is None:
        return None
    start, end = position(low[0]), position(high[0])
    if start is not None and end is not None and (start > end or (start == end and not (low[1] and high[1]))):
        return ()
    return (Piece(low[0], high[0], low[1], high[1]),)


def _inner_end(one: tuple[Node, bool], other: tuple[Node, bool], outermost: Node) -> tuple[Node, bool] | None:
    """Return the one of two ends that is further from ``outermost``, and whether it is closed."""
    for end, rest in ((one, other), (other, one)):
        if end[0] == outermost:
            return rest
    at, place = position(one[0]), position(other[0])
    if at is None or place is None:
        return None
    if at == place:
        return one[0], one[1] and other[1]
    return one if (at > place) is (outermost == MINUS_INFINITY) else other


def complement(pieces: tuple[Piece, ...]) -> tuple[Piece, ...] | None:
    """Return the reals outside of a union of intervals; ``None`` if the order of the intervals is unknown."""
    return intersection(*map(_outside, pieces))


def _outside(piece: Piece) -> tuple[Piece, ...]:
    below = Piece(MINUS_INFINITY, piece.low, False, not piece.low_closed)
    above = Piece(piece.high, INFINITY, not piece.high_closed, False)
    return tuple(part for part in (below, above) if key(part.low) != key(part.high))


_End = tuple[float, int]
"""An end of an interval, for sorting: its position, and 1 for an open lower end, -1 for an open upper end, else 0."""


def merged(pieces: tuple[Piece, ...]) -> tuple[Piece, ...] | None:
    """Return intervals in order, with touching intervals joined; ``None`` if their order is unknown."""
    spans: list[tuple[_End, _End, Piece]] = []
    for piece in pieces:
        low, high = position(piece.low), position(piece.high)
        if low is None or high is None:
            return None
        start, end = (low, 0 if piece.low_closed else 1), (high, 0 if piece.high_closed else -1)
        if start <= end:  # otherwise the interval is empty
            spans.append((start, end, piece))
    result: list[tuple[_End, Piece]] = []
    for start, end, piece in sorted(spans, key=lambda span: span[0]):
        reach, last = result[-1] if result else (None, piece)
        if reach is None or (start[0], start[1] - 1) > reach:
            result.append((end, piece))
        elif end > reach:
            result[-1] = end, Piece(last.low, piece.high, last.low_closed, piece.high_closed)
    return tuple(piece for _, piece in result)


def same_set(gold: RealSet, answer: RealSet, same: Same) -> bool | None:
    """Return whether two sets are equal; ``None`` if that cannot be decided.

    Args:
        gold: The gold set.
        answer: The set to grade.
        same: Function that compares two ends of intervals.
    """
    ordered = merged(gold.pieces), merged(answer.pieces)
    one, other = ordered if None not in ordered else (gold.pieces, answer.pieces)
    if one is None or other is None or len(one) != len(other):
        return False
    if None in ordered:
        return _match(list(one), list(other), same)
    return all_of(_same_piece(left, right, same) for left, right in zip(one, other, strict=True))


def _match(one: list[Piece], other: list[Piece], same: Same) -> bool:
    for left in one:
        found = next((right for right in other if _same_piece(left, right, same)), None)
        if found is None:
            return False
        other.remove(found)
    return True


def _same_piece(left: Piece, right: Piece, same: Same) -> bool | None:
    closed = (left.low_closed, left.high_closed) == (right.low_closed, right.high_closed)
    return closed and all_of(same(*ends) for ends in ((left.low, right.low), (left.high, right.high)))
