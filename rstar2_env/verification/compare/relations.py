"""Compares equations and inequalities by the points at which they hold.

Covered: equations and inequalities up to a constant factor; an equation solved for a variable in which it is linear;
chains ``a < b < c`` term by term. Not covered: solving; inequalities in one variable, which are sets (see ``realset``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from rstar2_env.verification.compare.equality import Rules, proportional, same_expression
from rstar2_env.verification.read.nodes import (
    ZERO,
    Apply,
    BracketGroup,
    Matrix,
    Node,
    Num,
    Relation,
    Sym,
    Words,
    replace_symbols,
    symbols,
)

SameAll = Callable[[Sequence[Node], Sequence[Node]], bool | None]


def same_relation(gold: Node, answer: Node, rules: Rules, same_all: SameAll) -> bool | None:
    """Compare two nodes of which at least one is a relation; return ``None`` if evaluation cannot decide.

    Args:
        gold: The gold value.
        answer: The answer.
        rules: The rules of the comparison.
        same_all: Function that compares two sequences of values.
    """
    if isinstance(gold, Relation) and isinstance(answer, Relation):
        return same_equation(gold, answer, rules, same_all)
    if isinstance(gold, Relation) and gold.ops == ("=",):
        return solves(gold, answer)
    return False


def same_equation(gold: Relation, answer: Relation, rules: Rules, same_all: SameAll) -> bool | None:
    """Compare two equations or inequalities by the points at which they hold.

    Args:
        gold: The gold equation or inequality.
        answer: The equation or inequality to grade.
        rules: The rules of the comparison.
        same_all: Function that compares two sequences of values.

    Returns:
        ``None`` when evaluation cannot decide.
    """
    one, other = _oriented(gold), _oriented(answer)
    if one is None or other is None:
        return _same_chain(gold, answer, same_all)
    if one[0] != other[0]:
        return False
    if not symbols(gold) and not symbols(answer) and one[0] in ("<", "<="):
        return _same_chain(gold, answer, same_all)
    if not symbols(answer) or not symbols(gold):
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
    if oriented is None or oriented[0] != "=":
        return False
    left = oriented[1]
    steps = linear_steps(left, name)
    if steps is None or same_expression(steps[0], steps[1], Rules()) is not False:
        return False
    return same_expression(replace_symbols(left, {name: value}), ZERO, Rules()) is True


def linear_steps(node: Node, name: str) -> list[Node] | None:
    """Return an expression at 0, 1 and 2 in place of a variable; ``None`` if it is not linear in the variable."""
    at = [replace_symbols(node, {name: Num(Fraction(point))}) for point in range(3)]
    bend = Apply("add", (at[0], at[2], Apply("neg", (Apply("mul", (Num(Fraction(2)), at[1])),))))
    return at if same_expression(bend, ZERO, Rules()) is True else None


def _same_chain(gold: Relation, answer: Relation, same_all: SameAll) -> bool | None:
    one, other = _upward(gold), _upward(answer)
    if one.ops != other.ops or len(one.sides) != len(other.sides):
        return False
    return same_all(one.sides, other.sides)


def _oriented(node: Relation) -> tuple[str, Node] | None:
    """Return a relation as an operator and an expression compared with zero; ``None`` for other relations."""
    if len(node.sides) != 2:
        return None
    left, right = node.sides
    match node.ops[0]:
        case "=" | "!=" | "<" | "<=" as op:
            return op, Apply("add", (left, Apply("neg", (right,))))
        case ">" | ">=" as op:
            return ("<" if op == ">" else "<="), Apply("add", (right, Apply("neg", (left,))))
        case _:
            return None


def _upward(node: Relation) -> Relation:
    """Return a chain of ``>`` as a chain of ``<``; other chains unchanged."""
    if all(op in (">", ">=") for op in node.ops):
        flipped = tuple("<" if op == ">" else "<=" for op in reversed(node.ops))
        return Relation(flipped, tuple(reversed(node.sides)))
    return node
