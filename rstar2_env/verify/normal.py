"""One form for what has several: words for numbers and sets, degrees as a unit, letters as units."""

from __future__ import annotations

import re
from fractions import Fraction

from rstar2_env.verify import units, words
from rstar2_env.verify.nodes import Apply, Const, Node, Num, Quantity, Sym, Words, rebuild, symbols

_CONSTANT_NAME = re.compile(r"[cCkK](?:_\d+)?|[ABD](?:_\d+)?|const")
_PARAMETER = re.compile(r"(?:[jklmnpqrstuv]|lambda|mu|alpha|beta)(?:_\d+)?")
_PHRASE_NODES: dict[str, Node] = {"#oo": Const("oo"), "#empty": Const("empty"), "#R": Const("R")}


def normal(node: Node) -> Node:
    """The tree with words that say a number or a set replaced by it, and degrees and radians as operations."""

    def change(part: Node) -> Node | None:
        if isinstance(part, Words) and part.text:
            text = words.canonical(part.text)
            if text in _PHRASE_NODES:
                return _PHRASE_NODES[text]
            return Num(Fraction(text)) if text.isdecimal() and len(text) < 20 else Words(part.text)
        if isinstance(part, Quantity):
            unit = units.read_unit(part.unit)
            if unit is not None and unit.dimension == (("deg", 1),):
                return Apply("deg", (normal(part.value),))
            if unit is not None and not unit.dimension and part.unit != "%":
                inner = normal(part.value)
                return inner if unit.factor == 1 else Apply("mul", (inner, Num(unit.factor)))
        return None

    return rebuild(node, change)


def as_quantity(node: Node, other: Node) -> Node:
    """Read a letter after a number as a unit (``5 m``) where the other side has no variables."""
    if symbols(other) or not isinstance(node, Apply) or node.op != "mul":
        return node
    *head, last = node.args
    if not isinstance(last, Sym) or not head or any(symbols(part) for part in head):
        return node
    if len(last.name) != 1 or units.read_unit(last.name) is None:
        return node
    return Quantity(head[0] if len(head) == 1 else Apply("mul", tuple(head)), last.name)


def is_constant_name(name: str) -> bool:
    """Whether a variable is called as constants of integration are: ``C``, ``k``, ``c_1``."""
    return _CONSTANT_NAME.fullmatch(name) is not None


def is_parameter(name: str) -> bool:
    """Whether a variable is called as parameters are: ``n`` in ``n pi``, ``t`` on a line, a constant."""
    return is_constant_name(name) or _PARAMETER.fullmatch(name) is not None
