"""Combines parsed parts of an answer into one node: sums, products, conditions, quantities of two units."""

from __future__ import annotations

from rstar2_env.verification.read import names
from rstar2_env.verification.read.lexer import ReadError, Token
from rstar2_env.verification.read.nodes import (
    INEQUALITIES,
    Apply,
    BracketGroup,
    Const,
    Given,
    Node,
    Num,
    Quantity,
    Relation,
    Sym,
    Words,
    symbols,
)
from rstar2_env.verification.read.units import DEGREE, read_unit

_FUNCTION_LETTERS = frozenset("fghFGHPQRSTEIVuyv")

_PARTS_OF_DEGREE = {"'": "minutes", "''": "seconds"}


def applied(node: Node, token: Token, right: Node) -> Node | None:
    """Return ``f(2)`` or ``I(0)`` (a letter applied to a number) as one name; ``None`` for other factors.

    Args:
        node: The factors so far.
        token: The first token of ``right``.
        right: The next factor.
    """
    if token.kind != "open" or token.text != "(" or token.spaced:
        return None
    inner = right.args[0] if isinstance(right, Apply) and right.op == "neg" else right
    last = node.args[-1] if isinstance(node, Apply) and node.op == "mul" else node
    if not isinstance(inner, Num) or not isinstance(last, Sym):
        return None
    if inner.value != 0 and last.name.partition("_")[0].rstrip("'") not in _FUNCTION_LETTERS:
        return None
    name = Sym(f"{last.name}({'' if inner is right else '-'}{inner.value})")
    return Apply("mul", (*node.args[:-1], name)) if last is not node and isinstance(node, Apply) else name


def is_condition(text: str) -> bool:
    """Return whether a text begins like a condition, such as "for all n"."""
    return text.split()[0].lower() in names.UNIT_STOPS


def as_condition(node: Node, text: str) -> str | None:
    """Return the condition that a bracket after an expression states, such as ``(k in Z)``; else ``None``.

    Args:
        node: The content of the bracket.
        text: The bracket as text.

    Raises:
        ReadError: The bracket holds another value instead of a condition.
    """
    second = isinstance(node, Given) and isinstance(node.body, Num | Quantity)  # such as "20 (25 if inclusive)"
    if second or (isinstance(node, Relation) and any(isinstance(side, Words) for side in node.sides)):
        raise ReadError("a second value follows the first one")  # such as "9 (should be 10)"
    if isinstance(node, Given) and isinstance(node.body, Words) and not node.body.text:
        return node.condition
    if isinstance(node, Relation | Given):
        return f"{names.RESTRICTION} {text[1:-1].strip()}"
    return node.text if isinstance(node, Words) else None


def restricts(node: Node, value: Node) -> bool:
    """Return whether a node restricts the variables of the value before it: an inequality, or ``x in [0, 1)``."""
    if not isinstance(node, Relation):
        return False
    interval = node.ops == ("in",) and isinstance(node.sides[0], Sym) and is_interval(node.sides[1])
    if not interval and not set(node.ops) <= INEQUALITIES:
        return False
    if isinstance(value, Relation):
        value = value.sides[-1] if set(value.ops) == {"="} else node
    return value is not node and bool(symbols(node)) and symbols(node) <= symbols(value)


def is_interval(node: Node) -> bool:
    """Return whether a node is a pair in round or square brackets, or a union of such pairs."""
    if isinstance(node, Apply) and node.op == "union":
        return all(map(is_interval, node.args))
    return isinstance(node, BracketGroup) and node.open in ("(", "[") and len(node.items) == 2


def is_number_set(node: Node) -> bool:
    """Return whether a node is a set of numbers, such as R, or R without 0."""
    return (isinstance(node, Const) and node.name in names.NUMBER_SETS) or (
        isinstance(node, Apply) and node.op == "diff"
    )


def add(terms: list[Node]) -> Node:
    """Return the sum of terms; a unit or a condition after the last term applies to the whole sum."""
    if len(terms) == 1:
        return terms[0]
    last = terms[-1]
    if isinstance(last, Quantity) and not any(isinstance(term, Quantity) for term in terms[:-1]):
        return Quantity(Apply("add", (*terms[:-1], last.value)), last.unit)
    if isinstance(last, Given):
        return Given(Apply("add", (*terms[:-1], last.body)), last.condition)
    return Apply("add", tuple(terms))


def negative(node: Node) -> Node:
    """Return a node with the opposite sign."""
    if isinstance(node, Num):
        return Num(-node.value, node.decimals)
    if isinstance(node, Quantity):
        return Quantity(negative(node.value), node.unit)
    if isinstance(node, Given):
        return Given(negative(node.body), node.condition)
    return Apply("neg", (node,))


def _part_of_degree(node: Node) -> Node | None:
    """Return an angle in minutes or seconds as a part of a degree; ``None`` for other nodes."""
    if not isinstance(node, Quantity) or not isinstance(node.value, Num):
        return None
    unit = read_unit(_PARTS_OF_DEGREE.get(node.unit, node.unit))
    if unit is None or unit.dimension != (("s", 1),) or unit.factor not in (1, 60):
        return None
    return Num(node.value.value * unit.factor / 3600)


def _in_degrees(node: Node) -> Node | None:
    """Return the number of degrees of an angle; ``None`` for other nodes."""
    if isinstance(node, Apply):
        return node.args[0] if node.op == "deg" else None
    return node.value if isinstance(node, Quantity) and read_unit(node.unit) == DEGREE else None


def times(left: Node, right: Node) -> Node:
    """Return the product of two factors; an angle in degrees and minutes, or two adjacent quantities, is one value."""
    if (part := _part_of_degree(right)) is not None and (degrees := _in_degrees(left)) is not None:
        return Apply("deg", (Apply("add", (degrees, part)),))  # such as "22 degrees 30 minutes"
    if isinstance(left, Quantity) and isinstance(right, Quantity):
        return Apply("together", (left, right))  # such as "3 hours 20 minutes"
    if isinstance(right, Quantity) and not isinstance(left, Quantity):
        return Quantity(Apply("mul", (left, right.value)), right.unit)
    if isinstance(left, Apply) and left.op == "mul":
        return Apply("mul", (*left.args, right))
    return Apply("mul", (left, right))
