r"""Reads functions by cases, such as LaTeX ``cases`` and "n if n is odd, n/2 otherwise", as one node.

The node is ``cases(value, condition, value, condition, …)``; a condition is a relation, several of them joined by
"and" or "or", or ``else``. A layout that holds no conditions is a list: a system of equations.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from fractions import Fraction

from rstar2_env.verification.read.lexer import ReadError
from rstar2_env.verification.read.nodes import (
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
)

ELSE = Const("else")
"""The node of the last case's condition if that is "otherwise"."""

_START = re.compile(r"\s*(?:if|for|when|where|provided|given|on)\b\s*", re.IGNORECASE)
_ELSE = re.compile(r"\s*(?:otherwise|else|elsewhere|in all other cases)\s*\.?", re.IGNORECASE)
_PARITY = re.compile(r"\s*([a-zA-Z])\s*(?:is)?\s*(?:an)?\s*(odd|even)(?:\s+(?:integer|number))?\s*")

Read = Callable[[str], Node]


def as_cases(node: Node, read: Read) -> Node | None:
    """Convert a node to one ``cases`` node; return ``None`` if it is not a function by cases.

    Args:
        node: A layout of rows, or a bare list whose items carry conditions.
        read: Function that parses the text of a condition.
    """
    if not isinstance(node, BracketGroup) or node.open not in ("", "cases"):
        return None
    label: Node | None = None
    parts: list[Node] = []
    rows = list(node.items)
    if rows and node.open == "" and (head := _labelled(rows[0])) is not None:
        label, rows[0] = head
    for row in rows:
        value, condition = _split(row, read)
        if condition is None:
            if node.open == "cases":
                return BracketGroup("", "", node.items)
            return None
        parts += [value, condition]
    if len(parts) < 4:
        return None
    made = Apply("cases", tuple(parts))
    return made if label is None else Relation(("=",), (label, made))


def _labelled(node: Node) -> tuple[Node, Node] | None:
    """Split ``f(x) = x if x > 0`` into the label ``f(x)`` of all cases and the first case; ``None`` for other nodes."""
    if isinstance(node, Given) and isinstance(node.body, Relation) and node.body.ops == ("=",):
        return node.body.sides[0], Given(node.body.sides[1], node.condition)
    return None


def _split(row: Node, read: Read) -> tuple[Node, Node | None]:
    match row:
        case BracketGroup(open="row", items=(value, Given(body=Words(text=""), condition=text) | Words(text=text))):
            return value, _condition(text, read)
        case BracketGroup(open="row", items=(value, *conditions)) if _are_relations(conditions):
            return value, conditions[0] if len(conditions) == 1 else BracketGroup("", "and", tuple(conditions))
        case Given(body=value, condition=text) if value != Words(""):
            return value, _condition(text, read)
        case Quantity(value=value, unit=unit) if _ELSE.fullmatch(unit):
            return value, ELSE
        case _:
            return row, None


def _condition(text: str, read: Read) -> Node | None:
    if _ELSE.fullmatch(text):
        return ELSE
    text = _START.sub("", text, count=1)
    if (parity := _PARITY.fullmatch(text)) is not None:
        rest = Apply("mod", (Sym(parity[1]), Num(Fraction(2))))
        return Relation(("=",), (rest, Num(Fraction(parity[2] == "odd"))))
    try:
        found = read(text)
    except ReadError:
        return None
    parts = found.items if isinstance(found, BracketGroup) and found.open == "" else (found,)
    return found if _are_relations(parts) else None


def _are_relations(nodes: Iterable[Node]) -> bool:
    return all(isinstance(node, Relation) for node in nodes)
